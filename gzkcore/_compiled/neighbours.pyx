"""A sparse factor G of the inverse of what features leave of a kernel, from nearest neighbours.

With landmarks: each row depends on the landmarks that it sees, and on its nearest neighbours.

Formula    With R = K - Z Z^T, rows in a random order, N_i the m nearest rows before row i in it,
           and S the matrix R + alpha N at the rows N_i and i: row i of G is g_i = S^-1 e_i /
           sqrt(e_i^T S^-1 e_i). G^T G is near (R + alpha N)^-1. With landmarks S has those that row
           i sees, too, before the rows N_i; what g_i has there is row i of B.
Why        What features leave is local: a row tells about its neighbours, and nothing of the rest.
Cost       The search compares a row with those in the boxes that it can't rule out: a few hundred
           in three columns, at most all, which is a kernel product. A row of G takes m^2 p / 2
           multiply-adds for products of features, m^2 (d + 12) / 2 for kernel values and m^3 / 6
           for each alpha.
Order      Rows are independent. They come in the order of a k-d tree, in which neighbours lie near
           in memory, too: each row of Z is fetched once and used by the m rows about it.
Layout     values (n, m + 1): G by row, the diagonal last; neighbours (n, m), the nearest first, and
           the row itself, with the value 0, where there are fewer. The tree is a heap of boxes:
           node v has the children 2v and 2v + 1, the last nodes are leaves of equally many rows.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, sqrtf
from libc.string cimport memcpy

from .checks cimport agree, inside, rising
from .leaf cimport GZK_LANES_F32, GZK_LANES_F64, PAGE, gzk_alloc, gzk_free
from .neighbours cimport (GZK_TALL, GZK_WIDE, kernel_of_few, last_of_inverse_factor,
                          subtract_features)
from .products cimport MOST_FACTORS, fill, gzk_factor
from .signals cimport look, seconds

cdef enum:
    DEPTH = 64    # of the stack of a search: one node for each level of the tree
    CHUNK = 64    # rows of G that a thread takes at a time

ctypedef fused element:
    float
    double


# ---- the tree


cdef void split(float* keys, int* rows, Py_ssize_t count, Py_ssize_t last) noexcept nogil:
    """Reorder rows so that no key up to place `last` is larger than one after it."""
    cdef Py_ssize_t low = 0, high = count - 1, i, j
    cdef float a, b, c, pivot, key
    cdef int row
    while low < high:
        a, b, c = keys[low], keys[(low + high) // 2], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                key = keys[i]
                row = rows[i]
                keys[i] = keys[j]
                rows[i] = rows[j]
                keys[j] = key
                rows[j] = row
                i += 1
                j -= 1
        if last <= j:
            high = j
        elif last >= i:
            low = i
        else:
            break


cdef void halve(const float* X, Py_ssize_t n, Py_ssize_t d, const float* gaps, Py_ssize_t n_codes,
                float* box, float* keys, int* rows, Py_ssize_t count) noexcept nogil:
    """Reorder the rows of a node so that its halves lie apart along the widest column.

    Rows from n on are none, and come last. Codes that differ are as wide as the root of their gap.
    """
    cdef Py_ssize_t i, k, widest = 0
    cdef float width, most = -1
    for k in range(d):
        box[k] = INFINITY
        box[d + k] = -INFINITY
    for i in range(count):
        if rows[i] < n:
            for k in range(d):
                box[k] = min(box[k], X[rows[i] * d + k])
                box[d + k] = max(box[d + k], X[rows[i] * d + k])
    for k in range(d):
        width = box[d + k] - box[k]
        if k >= d - n_codes and width > 0:
            width = sqrtf(gaps[k - d + n_codes])
        if width > most:
            most = width
            widest = k
    for i in range(count):
        keys[i] = X[rows[i] * d + widest] if rows[i] < n else <float> INFINITY
    split(keys, rows, count, count // 2 - 1)


def tree_order(
    const float[:, ::1] X,               # IN   (n, d): numbers, then codes
    const float[::1] gaps,               # IN   (n_codes,): the squared distance of different codes
    int n_levels,
    int[::1] order,                      # IN   any order, OUT (2^n_levels size,): rows by leaf
    float[::1] keys,                     # OUT  scratch, as long
    int n_threads,
):
    """Halve the rows of each node, level after level. Numbers from n on are no rows."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], n_codes = gaps.shape[0], level, node, n_nodes
    cdef Py_ssize_t count, stride = (2 * d + PAGE) // 16 * 16
    cdef const float* of_codes = &gaps[0] if n_codes else NULL
    cdef float *boxes
    agree(keys.shape[0] == order.shape[0] and n_codes <= d, "order, keys and gaps")
    boxes = <float*> gzk_alloc(n_threads * stride * sizeof(float))
    if boxes == NULL:
        raise MemoryError("no memory for the scratch buffers of tree_order")
    try:
        for level in range(n_levels):
            n_nodes = 1 << level
            count = order.shape[0] // n_nodes
            for node in prange(n_nodes, schedule="dynamic", nogil=True, num_threads=n_threads):
                halve(&X[0, 0], n, d, of_codes, n_codes, boxes + threadid() * stride,
                      &keys[node * count], &order[node * count], count)
            PyErr_CheckSignals()
    finally:
        gzk_free(boxes)


# ---- nearest rows before a row


cdef inline float apart(const float* box, const float* x, Py_ssize_t d, const float* gaps,
                        Py_ssize_t n_codes) noexcept nogil:
    """Squared distance of a point from a box: its lowest corner, then its highest."""
    cdef float total = 0, beyond
    cdef Py_ssize_t k
    for k in range(d - n_codes):
        beyond = max(box[k] - x[k], x[k] - box[d + k])
        beyond = max(beyond, <float> 0)
        total += beyond * beyond
    for k in range(d - n_codes, d):
        if x[k] < box[k] or x[k] > box[d + k]:
            total += gaps[k - d + n_codes]
    return total


cdef inline void squared_distances(const float* leaf, const float* x, Py_ssize_t d, Py_ssize_t size,
                                   const float* gaps, Py_ssize_t n_codes,
                                   float* out) noexcept nogil:
    """out[r] = |x - row r of the leaf|^2; codes, which come last, that differ add their gap."""
    cdef Py_ssize_t k, r
    cdef float gap, zero = 0
    for r in range(size):
        out[r] = 0
    for k in range(d - n_codes):
        for r in range(size):
            out[r] += (x[k] - leaf[k * size + r]) * (x[k] - leaf[k * size + r])
    for k in range(d - n_codes, d):
        gap = gaps[k - d + n_codes]
        for r in range(size):
            out[r] += zero if x[k] == leaf[k * size + r] else gap


cdef inline void insert(float distance, int row, float* best, int* neighbours,
                        Py_ssize_t m) noexcept nogil:
    """Put a row among the m nearest, sorted by distance; the last drops out."""
    cdef Py_ssize_t place = m - 1
    while place > 0 and best[place - 1] > distance:
        best[place] = best[place - 1]
        neighbours[place] = neighbours[place - 1]
        place -= 1
    best[place] = distance
    neighbours[place] = row


cdef void search(const float* x, int rank, const float* leaves, const float* boxes,
                 const int* first_rank, const int* ranks, Py_ssize_t n_leaves, Py_ssize_t size,
                 Py_ssize_t d, const float* gaps, Py_ssize_t n_codes, Py_ssize_t m,
                 float* distances, float* best, int* neighbours) noexcept nogil:
    """Find the m nearest rows of a smaller rank, the nearer of two boxes first."""
    cdef Py_ssize_t nodes[DEPTH]
    cdef float least[DEPTH]
    cdef Py_ssize_t top = 1, node, leaf, r, near
    cdef float left, right
    nodes[0] = 1
    least[0] = 0
    while top:
        top -= 1
        node = nodes[top]
        if least[top] >= best[m - 1] or first_rank[node] >= rank:
            continue
        if node >= n_leaves:
            leaf = (node - n_leaves) * size
            squared_distances(leaves + leaf * d, x, d, size, gaps, n_codes, distances)
            for r in range(size):
                if distances[r] < best[m - 1] and ranks[leaf + r] < rank:
                    insert(distances[r], <int> (leaf + r), best, neighbours, m)
            continue
        left = apart(boxes + 4 * node * d, x, d, gaps, n_codes)
        right = apart(boxes + (4 * node + 2) * d, x, d, gaps, n_codes)
        near = 1 if right < left else 0
        nodes[top] = 2 * node + 1 - near
        least[top] = max(left, right)
        nodes[top + 1] = 2 * node + near
        least[top + 1] = min(left, right)
        top += 2


def nearest_before(
    const float[:, :, ::1] leaves,     # IN   (n_leaves, d, size), n_leaves a power of two
    const float[:, :, ::1] boxes,      # IN   (2 n_leaves, 2, d): lowest and highest corners
    const int[::1] first_rank,         # IN   (2 n_leaves,): the smallest rank in each node
    const int[::1] ranks,              # IN   (n_leaves * size,): of the rows, < 0 is none's
    Py_ssize_t n_rows,                 # the first so many rows are asked for
    int[:, ::1] neighbours,            # OUT  (n_rows, m): nearest first; itself if there is none
    int n_threads,
):
    """Find, for each row, the nearest m rows of a smaller rank."""
    cdef Py_ssize_t n_leaves = leaves.shape[0], d = leaves.shape[1], size = leaves.shape[2]
    cdef Py_ssize_t m = neighbours.shape[1], i, k, stride = (d + size + m + PAGE) // 16 * 16
    cdef Py_ssize_t start = 0, end, step = CHUNK * n_threads
    cdef double begun = seconds()
    cdef float *scratch
    cdef float *x
    cdef float *distances
    cdef float *best
    if m == 0:
        return
    scratch = <float*> gzk_alloc(n_threads * stride * sizeof(float))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of nearest_before")
    try:
        while start < n_rows:
            end = min(n_rows, start + step)
            for i in prange(start, end, schedule="dynamic", chunksize=CHUNK,
                            nogil=True, num_threads=n_threads):
                x = scratch + threadid() * stride
                distances = x + d
                best = distances + size
                for k in range(d):
                    x[k] = leaves[i // size, k, i % size]
                for k in range(m):
                    best[k] = INFINITY
                    neighbours[i, k] = <int> i
                search(x, ranks[i], &leaves[0, 0, 0], &boxes[0, 0, 0], &first_rank[0], &ranks[0],
                       n_leaves, size, d, NULL, 0, m, distances, best, &neighbours[i, 0])
            start += step
            step = look(step, &begun)
    finally:
        gzk_free(scratch)


def nearest(
    const float[:, ::1] points,        # IN   (n, d): numbers, then codes
    const float[:, :, ::1] leaves,     # IN   (n_leaves, d, size), n_leaves a power of two
    const float[:, :, ::1] boxes,      # IN   (2 n_leaves, 2, d): lowest and highest corners
    const int[::1] first_rank,         # IN   (2 n_leaves,): the smallest rank in each node
    const int[::1] ranks,              # IN   (n_leaves * size,): 0, and 1 where there is no row
    const float[::1] gaps,             # IN   (n_codes,): the squared distance of different codes
    int[:, ::1] neighbours,            # OUT  (n, m): nearest first; there must be so many rows
    int n_threads,
):
    """Find the m rows that are nearest to each point."""
    cdef Py_ssize_t n_leaves = leaves.shape[0], d = leaves.shape[1], size = leaves.shape[2]
    cdef Py_ssize_t m = neighbours.shape[1], i, k, stride = (size + m + PAGE) // 16 * 16
    cdef Py_ssize_t n = points.shape[0], start = 0, end, step = CHUNK * n_threads
    cdef Py_ssize_t n_codes = gaps.shape[0]
    cdef const float* of_codes = &gaps[0] if n_codes else NULL
    cdef double begun = seconds()
    cdef float *scratch
    cdef float *distances
    cdef float *best
    scratch = <float*> gzk_alloc(n_threads * stride * sizeof(float))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of nearest")
    try:
        while start < n:
            end = min(n, start + step)
            for i in prange(start, end, schedule="dynamic", chunksize=CHUNK,
                            nogil=True, num_threads=n_threads):
                distances = scratch + threadid() * stride
                best = distances + size
                for k in range(m):
                    best[k] = INFINITY
                    neighbours[i, k] = 0
                search(&points[i, 0], 1, &leaves[0, 0, 0], &boxes[0, 0, 0], &first_rank[0],
                       &ranks[0], n_leaves, size, d, of_codes, n_codes, m, distances, best,
                       &neighbours[i, 0])
            start += step
            step = look(step, &begun)
    finally:
        gzk_free(scratch)


def spread(
    const float[:, ::1] points,          # IN   (d, n)
    const float[::1] density,            # IN   (n,): squared distances are multiplied by it
    Py_ssize_t first,
    float[::1] distances,                # OUT  (n,): scratch
    Py_ssize_t[::1] chosen,              # OUT  (q,)
):
    """Choose points one by one: the first, and then always the furthest from those chosen.

    On one thread: 256 of 8,192 points in three columns take 6.5 ms, and each of their 256 steps, 25
    microseconds, would end at a barrier, which takes as long, and a time slice beside other work.
    """
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1], i, k, step, last = first
    cdef float apart, off, best
    for i in range(n):
        distances[i] = INFINITY
    for step in range(chosen.shape[0]):
        chosen[step] = last
        with nogil:
            for i in range(n):
                apart = 0
                for k in range(d):
                    off = points[k, i] - points[k, last]
                    apart = apart + off * off
                distances[i] = min(distances[i], density[i] * apart)
            best = -1
            for i in range(n):
                if distances[i] > best:
                    best = distances[i]
                    last = i
        PyErr_CheckSignals()


# ---- the factor


def sparse_factor(
    const double[:, ::1] X,              # IN   (n + q, d), scaled, columns of factor after factor
    const floating[:, ::1] Z,            # IN   (n + q, p), p a multiple of lanes
    const int[:, ::1] neighbours,        # IN   (n, m)
    const int[:, ::1] seen,              # IN   (n, l), from 0 to q - 1
    const double[:, ::1] noise,          # IN   (s, n + q)
    const double[:, ::1] weights,        # IN   (n + q, n_terms): w
    const long long[:, ::1] factors,     # IN   (count, 12), (count, 4): see `fill` of products.pxd
    const double[:, ::1] numbers,
    const floating[::1] coefficients,
    floating[:, :, ::1] values,          # OUT  (s, n, m + 1)
    floating[:, :, ::1] at_seen,         # OUT  (s, n, l)
    int n_threads,
):
    """Make the rows of G and B for each alpha: the last row of the inverse factor of S."""
    cdef Py_ssize_t n = neighbours.shape[0], d = X.shape[1], p = Z.shape[1]
    cdef Py_ssize_t m = neighbours.shape[1], seeing = seen.shape[1], most = m + seeing
    cdef Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
    cdef Py_ssize_t width = (most + lanes) // lanes * lanes, square = (most + 1) * width
    cdef Py_ssize_t n_terms = weights.shape[1]
    cdef Py_ssize_t stride = (d + n_terms) * width + 2 * square + 2 * width
    cdef Py_ssize_t pointers = most + 1 + GZK_TALL + GZK_WIDE
    cdef Py_ssize_t i, j, k, f, s, count, row, n_factors = factors.shape[0]
    cdef Py_ssize_t start = 0, end, step = CHUNK * n_threads
    cdef double begun = seconds()
    cdef gzk_factor known[MOST_FACTORS]
    cdef floating *scratch
    cdef floating *u
    cdef floating *R
    cdef floating *S
    cdef floating *own
    cdef floating *g
    cdef const floating **z
    cdef const floating **features
    cdef int *rows
    cdef int *here
    agree(seen.shape[0] == n and X.shape[0] >= n and Z.shape[0] == X.shape[0]
          and noise.shape[1] == X.shape[0] and weights.shape[0] == X.shape[0]
          and values.shape[0] == noise.shape[0] and values.shape[1] == n
          and values.shape[2] == m + 1 and at_seen.shape[0] == noise.shape[0]
          and at_seen.shape[1] == n and at_seen.shape[2] == seeing, "rows, neighbours and values")
    if n > 0 and m > 0:
        inside(&neighbours[0, 0], n * m, 1, n, "neighbours")
    if n > 0 and seeing > 0:
        inside(&seen[0, 0], n * seeing, 1, X.shape[0] - n, "seen")
    fill(known, factors, numbers, coefficients)
    for f in range(n_factors):
        agree(0 <= known[f].term < n_terms, "factors and weights")
    stride = (stride + PAGE) // 16 * 16
    scratch = <floating*> gzk_alloc(n_threads * stride * sizeof(floating))
    features = <const floating**> gzk_alloc(n_threads * pointers * sizeof(void*))
    rows = <int*> gzk_alloc(n_threads * (width + PAGE) * sizeof(int))
    if scratch == NULL or features == NULL or rows == NULL:
        gzk_free(scratch)
        gzk_free(features)
        gzk_free(rows)
        raise MemoryError("no memory for the scratch buffers of sparse_factor")
    try:
        while start < n:
            end = min(n, start + step)
            for i in prange(start, end, schedule="dynamic", chunksize=CHUNK,
                            nogil=True, num_threads=n_threads):
                u = scratch + threadid() * stride
                R = u + (d + n_terms) * width
                S = R + square
                own = S + square
                g = own + width
                z = features + threadid() * pointers
                here = rows + threadid() * (width + PAGE)
                for j in range(seeing):
                    here[j] = <int> n + seen[i, j]
                count = 0
                while count < m and neighbours[i, count] != i:
                    here[seeing + count] = neighbours[i, count]
                    count = count + 1
                count = count + seeing
                for j in range(count, width):
                    here[j] = <int> i
                for j in range(width):
                    row = here[j]
                    for k in range(n_terms):
                        u[(d + k) * width + j] = <floating> weights[row, k]
                    for f in range(n_factors):
                        for k in range(known[f].first, known[f].first + known[f].dim):
                            u[k * width + j] = <floating> (
                                X[row, k] - X[i, k] if known[f].of_distances else X[row, k])
                kernel_of_few(known, n_factors, u, d, count + 1, width, R)
                if p > 0:
                    for j in range(count + GZK_TALL + GZK_WIDE):
                        z[j] = &Z[here[j] if j < count else i, 0]
                    subtract_features(z, p, count + 1, width, R)
                for s in range(noise.shape[0]):
                    memcpy(S, R, (count + 1) * width * sizeof(floating))
                    for j in range(count + 1):
                        own[j] = <floating> noise[s, here[j]]
                        S[j * width + j] += own[j]
                    last_of_inverse_factor(S, count + 1, width, own, g)
                    for j in range(seeing):
                        at_seen[s, i, j] = g[j]
                    for j in range(m):
                        values[s, i, j] = g[seeing + j] if seeing + j < count else 0
                    values[s, i, m] = g[count]
            start += step
            step = look(step, &begun)
    finally:
        gzk_free(scratch)
        gzk_free(features)
        gzk_free(rows)


def kernel_of_blocks(
    const double[:, ::1] X,              # IN   (n_blocks size, d), scaled, factor after factor
    const double[:, ::1] weights,        # IN   (n_blocks size, n_terms): w
    const long long[:, ::1] factors,     # IN   (count, 12), (count, 4): see `fill` of products.pxd
    const double[:, ::1] numbers,
    const floating[::1] coefficients,
    floating[:, :, ::1] out,             # OUT  (n_blocks, size, size)
    int n_threads,
):
    """Write the kernel matrices of blocks of rows: k(x_i, x_j)."""
    cdef Py_ssize_t n_blocks = out.shape[0], size = out.shape[1], d = X.shape[1], b, f, i, j, k
    cdef Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
    cdef Py_ssize_t width = (size + lanes - 1) // lanes * lanes
    cdef Py_ssize_t n_terms = weights.shape[1]
    cdef Py_ssize_t stride = ((d + n_terms + size) * width + PAGE) // 16 * 16, start = 0, end
    cdef Py_ssize_t step = CHUNK * n_threads, row
    cdef int n_factors = <int> factors.shape[0]
    cdef double begun = seconds()
    cdef gzk_factor known[MOST_FACTORS]
    cdef floating *scratch
    cdef floating *u
    cdef floating *S
    agree(X.shape[0] == n_blocks * size and weights.shape[0] == X.shape[0]
          and out.shape[2] == size, "rows and blocks")
    fill(known, factors, numbers, coefficients)
    for f in range(n_factors):
        agree(0 <= known[f].term < n_terms, "factors and weights")
    scratch = <floating*> gzk_alloc(n_threads * stride * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of kernel_of_blocks")
    try:
        while start < n_blocks:
            end = min(n_blocks, start + step)
            for b in prange(start, end, schedule="dynamic", nogil=True, num_threads=n_threads):
                u = scratch + threadid() * stride
                S = u + (d + n_terms) * width
                for j in range(width):
                    row = b * size + min(j, size - 1)
                    for k in range(n_terms):
                        u[(d + k) * width + j] = <floating> weights[row, k]
                    for k in range(d):
                        u[k * width + j] = <floating> X[row, k]
                kernel_of_few(known, n_factors, u, d, size, width, S)
                for i in range(size):
                    for j in range(i, size):
                        out[b, i, j] = S[i * width + j]
                        out[b, j, i] = S[i * width + j]
            start += step
            step = look(step, &begun)
    finally:
        gzk_free(scratch)


# ---- its products


cdef int check_columns(Py_ssize_t n, Py_ssize_t width, const Py_ssize_t[::1] starts,
                       const int[::1] rows, const unsigned char[::1] places,
                       Py_ssize_t n_rows) except -1:
    """Raise ValueError unless the entries of all columns are of values (n, width) and of V."""
    cdef Py_ssize_t i
    cdef int last = 0
    rising(starts, rows.shape[0])
    agree(places.shape[0] == rows.shape[0] and n_rows == n, "rows, places and V")
    for i in range(rows.shape[0]):
        last = max(last, places[i])
    agree(rows.shape[0] == 0 or last < width, "places and values")
    if rows.shape[0] > 0:
        inside(&rows[0], rows.shape[0], 1, n, "rows")
    return 0


def multiply(
    const floating[:, ::1] values,       # IN   (n, m + 1)
    const int[:, ::1] neighbours,        # IN   (n, m)
    const element[:, ::1] V,             # IN   (n, k)
    Py_ssize_t start,                    # the first row that is asked for
    double[:, ::1] out,                  # OUT  (n_rows, k)
    int n_threads,
):
    """out = G[start:start + n_rows] V."""
    cdef Py_ssize_t m = neighbours.shape[1], k = V.shape[1], i, j, q, row
    cdef Py_ssize_t n = neighbours.shape[0]
    cdef double value
    agree(values.shape[0] == n and values.shape[1] == m + 1 and V.shape[0] == n
          and 0 <= start <= n - out.shape[0] and out.shape[1] == k, "values, neighbours and V")
    if m > 0 and out.shape[0] > 0:
        inside(&neighbours[start, 0], out.shape[0] * m, 1, n, "neighbours")
    for i in prange(out.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        value = values[start + i, m]
        for q in range(k):
            out[i, q] = value * V[start + i, q]
        for j in range(m):
            row = neighbours[start + i, j]
            value = values[start + i, j]
            for q in range(k):
                out[i, q] += value * V[row, q]


def multiply_transposed(
    const floating[:, ::1] values,       # IN   (n, m + 1)
    const Py_ssize_t[::1] starts,        # IN   (n + 1,): where the entries of each column begin
    const int[::1] rows,                 # IN   (entries,)
    const unsigned char[::1] places,     # IN   (entries,): of an entry in its row
    const double[:, ::1] V,              # IN   (n, k)
    double[:, ::1] out,                  # OUT  (n, k)
    int n_threads,
):
    """out = G^T V, column by column."""
    cdef Py_ssize_t m = values.shape[1] - 1, k = V.shape[1], i, e, q, row
    cdef double value
    check_columns(values.shape[0], values.shape[1], starts, rows, places, V.shape[0])
    agree(m >= 0 and out.shape[0] == values.shape[0] == starts.shape[0] - 1 and out.shape[1] == k,
          "values, starts and out")
    for i in prange(out.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        value = values[i, m]
        for q in range(k):
            out[i, q] = value * V[i, q]
        for e in range(starts[i], starts[i + 1]):
            row = rows[e]
            value = values[row, places[e]]
            for q in range(k):
                out[i, q] += value * V[row, q]


# ---- products of B, that is at what rows see


def multiply_seen(
    const floating[:, ::1] values,       # IN   (n, l)
    const int[:, ::1] seen,              # IN   (n, l)
    const double[:, ::1] V,              # IN   (q, k)
    double[:, ::1] out,                  # IN OUT (n, k)
    int n_threads,
):
    """out -= B V."""
    cdef Py_ssize_t seeing = seen.shape[1], k = V.shape[1], i, j, q, row
    cdef double value
    agree(seeing > 0 and values.shape[0] == out.shape[0] == seen.shape[0]
          and values.shape[1] == seeing and out.shape[1] == k, "values, seen and out")
    inside(&seen[0, 0], out.shape[0] * seeing, 1, V.shape[0], "seen")
    for i in prange(out.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        for j in range(seeing):
            row = seen[i, j]
            value = values[i, j]
            for q in range(k):
                out[i, q] -= value * V[row, q]


def multiply_seen_transposed(
    const floating[:, ::1] values,       # IN   (n, l)
    const Py_ssize_t[::1] starts,        # IN   (q + 1,): where the entries of each column begin
    const int[::1] rows,                 # IN   (entries,)
    const unsigned char[::1] places,     # IN   (entries,): of an entry in its row
    const double[:, ::1] V,              # IN   (n, k)
    double[:, ::1] out,                  # OUT  (q, k)
    int n_threads,
):
    """out = B^T V, column by column."""
    cdef Py_ssize_t k = V.shape[1], i, e, q, row
    cdef double value
    check_columns(values.shape[0], values.shape[1], starts, rows, places, V.shape[0])
    agree(starts.shape[0] == out.shape[0] + 1 and out.shape[1] == k, "starts and out")
    for i in prange(out.shape[0], schedule="dynamic", nogil=True, num_threads=n_threads):
        for q in range(k):
            out[i, q] = 0
        for e in range(starts[i], starts[i + 1]):
            row = rows[e]
            value = values[row, places[e]]
            for q in range(k):
                out[i, q] += value * V[row, q]


def gram_of_seen(
    const floating[:, ::1] values,       # IN   (n, l)
    const int[:, ::1] seen,              # IN   (n, l)
    const Py_ssize_t[::1] starts,        # IN   (q + 1,): where the entries of each column begin
    const int[::1] rows,                 # IN   (entries,)
    const unsigned char[::1] places,     # IN   (entries,): of an entry in its row
    double[:, ::1] out,                  # OUT  (q, q)
    int n_threads,
):
    """out = B^T B, row by row."""
    cdef Py_ssize_t seeing = seen.shape[1], i, e, j, row
    cdef double value
    check_columns(values.shape[0], values.shape[1], starts, rows, places, seen.shape[0])
    agree(seeing > 0 and values.shape[1] == seeing and starts.shape[0] == out.shape[0] + 1,
          "values, seen and out")
    inside(&seen[0, 0], seen.shape[0] * seeing, 1, out.shape[1], "seen")
    for i in prange(out.shape[0], schedule="dynamic", nogil=True, num_threads=n_threads):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for e in range(starts[i], starts[i + 1]):
            row = rows[e]
            value = values[row, places[e]]
            for j in range(seeing):
                out[i, seen[row, j]] += value * values[row, j]
