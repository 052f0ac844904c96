"""Products of kernel matrices with vectors, for `products`: nothing of n^2 is stored.

Formula    out[i, q] = sum_j k(x_i, y_j) V[j, q].
Why        A kernel value costs some ten operations and is used at once, so that the product is
           bound by arithmetic and not by memory. Rows come in tiles of TILE neighbours: coordinates
           about the centre of the column's tile keep single precision exact enough, and pairs of
           tiles that are further apart than the kernel reaches are skipped. Of a symmetric matrix
           each pair of tiles is computed once and used in both directions.
Cost       n^2 (d + 12) multiply-adds (half of it where symmetric), and n^2 for each vector. Memory:
           the rows, the vectors and the result.
Order      Tiles are cut into blocks. Where Y is X, blocks meet as in a tournament: in each round
           every block meets one other, so that no two threads add to the same rows, and sums don't
           depend on the threads. Sums within a tile are in the type of the data, across tiles in
           double. Between parts of a round signals are looked at: Ctrl-C stops a long product.
Layout     X (I, dim, TILE) and Y (J, dim, TILE): coordinates of each tile about its centre; V (J,
           TILE, width) and out (I, TILE, width). The last row of a tile that is not full is
           repeated, with 0 in V. A factor of the kernel has its columns, those of the next follow:
           `factors` (count, 12) and `numbers` (count, 4) are read by `fill`.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport fabs, sqrt
from libc.string cimport memset

from .checks cimport agree, inside
from .leaf cimport GZK_LANES_F32, GZK_LANES_F64, PAGE, gzk_alloc, gzk_free
from .products cimport (
    GZK_DIFFERENCE,
    GZK_PRODUCT,
    GZK_STRIP,
    GZK_TILE,
    MOST_FACTORS,
    add_lanes,
    expand,
    fill,
    gzk_factor,
    gzk_flush_denormals,
    gzk_set_denormals,
    gzk_tile_slopes_f64,
    move,
    tile,
    values,
)

cdef enum:
    BLOCKS = 64
    WORK = 1 << 30    # operations between two looks at signals: at most a second of a thread

# Rows are compared by differences where one is further from a centre, so that no square overflows;
# coordinates themselves go no further than the second.
cdef double ENORMOUS = 1e15
cdef double MOST_F32 = 1e37
cdef double MOST_F64 = 1e300


cdef int check_tiles(
    const gzk_factor* factors, Py_ssize_t count, const floating[:, :, ::1] X,
    const double[:, ::1] centers, const double[:, ::1] radii,
) except -1:
    """Raise ValueError unless tiles, their centres and radii are of each other, and of the factors.
    """
    cdef Py_ssize_t f
    agree(X.shape[2] == GZK_TILE and centers.shape[0] == X.shape[0]
          and centers.shape[1] == X.shape[1] and radii.shape[0] == X.shape[0]
          and radii.shape[1] == count, "tiles, centers and radii")
    for f in range(count):
        agree(0 <= factors[f].first <= X.shape[1] and factors[f].dim >= 0
              and factors[f].first + factors[f].dim <= X.shape[1], "tiles and factors")
    return 0


cdef inline Py_ssize_t pairs_at_once(Py_ssize_t dim, Py_ssize_t count,
                                     Py_ssize_t width) noexcept nogil:
    """How many pairs of tiles take WORK operations, about."""
    return max(<Py_ssize_t> 1, WORK // (GZK_TILE * GZK_TILE * (dim + 8 * count + width)))


cdef inline bint beyond(const gzk_factor* factors, Py_ssize_t count, const double* p,
                        const double* q, const double* r, const double* s,
                        const double* reach) noexcept nogil:
    """Whether balls about p and q of radii r, s are further apart than one factor reaches."""
    cdef double total
    cdef Py_ssize_t f, k
    for f in range(count):
        total = 0
        for k in range(factors[f].first, factors[f].first + factors[f].dim):
            total += (p[k] - q[k]) * (p[k] - q[k])
        if sqrt(total) - r[f] - s[f] > reach[f]:
            return True
    return False


cdef inline void approach(const gzk_factor* factors, gzk_factor* here, Py_ssize_t count,
                          const floating* x, const double* p, const double* r,
                          const floating* y, const double* q, const double* s, double far,
                          floating* u, floating* a, floating* b) noexcept nogil:
    """Prepare a tile of rows x about p for one of columns y about q: u (x about q), a and b.

    Columns that are `far` from their centre (s is their largest distance, r that of rows) are
    compared by differences: the rounding error of a product of coordinates grows with the square of
    the distance.
    """
    cdef double most = MOST_F32 if floating is float else MOST_F64, shift, largest
    cdef Py_ssize_t f, k
    for f in range(count):
        here[f] = factors[f]
        largest = r[f]
        for k in range(here[f].first, here[f].first + here[f].dim):
            shift = p[k] - q[k]
            largest = max(largest, fabs(shift))
            move(x + k * GZK_TILE, <floating> max(-most, min(shift, most)), u + k * GZK_TILE)
        if here[f].metric == GZK_PRODUCT and here[f].of_distances and (
                s[f] > far or largest > ENORMOUS):
            here[f].metric = GZK_DIFFERENCE
        if here[f].metric == GZK_PRODUCT:
            k = here[f].first * GZK_TILE
            expand(&here[f], u + k, a + f * GZK_TILE, y + k, b + f * GZK_TILE)


cdef inline void match(Py_ssize_t turn, Py_ssize_t table, Py_ssize_t seats,
                       Py_ssize_t* pair) noexcept nogil:
    """Say who meets at a table in a round of a tournament of `seats`, an even number."""
    cdef Py_ssize_t moving = seats - 1
    cdef Py_ssize_t one = (turn + table) % moving
    cdef Py_ssize_t other = moving if table == 0 else (turn - table + moving) % moving
    pair[0] = min(one, other)
    pair[1] = max(one, other)


cdef Py_ssize_t multiply(
    const gzk_factor* factors, Py_ssize_t count, const double* reach, double far,
    Py_ssize_t first_row, Py_ssize_t end_row, Py_ssize_t first_column, Py_ssize_t end_column,
    bint symmetric, const Py_ssize_t[::1] X_counts,
    const floating[:, :, ::1] X, const double[:, ::1] X_centers, const double[:, ::1] X_radii,
    const floating[:, :, ::1] Y, const double[:, ::1] Y_centers, const double[:, ::1] Y_radii,
    const floating[:, :, ::1] V, double[:, :, ::1] out, floating* scratch,
) noexcept nogil:
    """Add the products of all pairs of these tiles to out; return how many were not skipped."""
    cdef Py_ssize_t dim = X.shape[1], width = V.shape[2], row, column, i, done = 0
    cdef Py_ssize_t lanes = GZK_LANES_F32 if floating is float else GZK_LANES_F64
    cdef Py_ssize_t result = GZK_TILE * (lanes if width == 1 else width)
    cdef gzk_factor here[MOST_FACTORS]
    cdef floating *a = scratch + dim * GZK_TILE
    cdef floating *b = a + count * GZK_TILE
    cdef floating *wi = b + count * GZK_TILE
    cdef floating *wj = wi + result
    cdef floating *buffer = wj + GZK_TILE * width
    cdef double *target
    cdef bint both
    cdef unsigned before = gzk_flush_denormals()
    for row in range(first_row, end_row):
        for column in range(max(row, first_column) if symmetric else first_column, end_column):
            if beyond(factors, count, &X_centers[row, 0], &Y_centers[column, 0], &X_radii[row, 0],
                      &Y_radii[column, 0], reach):
                continue
            done += 1
            both = symmetric and column > row
            approach(factors, here, count, &X[row, 0, 0], &X_centers[row, 0], &X_radii[row, 0],
                     &Y[column, 0, 0], &Y_centers[column, 0], &Y_radii[column, 0], far, scratch, a,
                     b)
            memset(wi, 0, result * sizeof(floating))
            if both:
                memset(wj, 0, GZK_TILE * width * sizeof(floating))
            tile(here, count, scratch, a, &Y[column, 0, 0], b, &V[column, 0, 0], wi,
                 &V[row if both else 0, 0, 0], wj, width, both, X_counts[row], buffer)
            target = &out[row, 0, 0]
            if width == 1:
                add_lanes(wi, target)
            else:
                for i in range(GZK_TILE * width):
                    target[i] += wi[i]
            if both:
                target = &out[column, 0, 0]
                for i in range(GZK_TILE * width):
                    target[i] += wj[i]
    gzk_set_denormals(before)
    return done


cdef Py_ssize_t scratch_size(Py_ssize_t dim, Py_ssize_t count, Py_ssize_t width) noexcept nogil:
    """Elements that one thread needs: u, a and b, results of a tile, strips."""
    cdef Py_ssize_t size = dim + 2 * count + (width if width > 1 else GZK_LANES_F32) + width
    return (GZK_TILE * (size + 3 * GZK_STRIP) + PAGE) // 16 * 16


def kernel_product(
    const floating[:, :, ::1] X,          # IN   (I, dim, TILE)
    const double[:, ::1] X_centers,       # IN   (I, dim)
    const double[:, ::1] X_radii,         # IN   (I, count)
    const Py_ssize_t[::1] X_counts,       # IN   (I,): rows of each tile; copies fill it
    const floating[:, :, ::1] Y,          # IN   (J, dim, TILE)
    const double[:, ::1] Y_centers,       # IN   (J, dim)
    const double[:, ::1] Y_radii,         # IN   (J, count)
    const floating[:, :, ::1] V,          # IN   (J, TILE, width), width 1 or a multiple of lanes;
                                          #      where symmetric 0 at copies
    const long long[:, ::1] factors,      # IN   (count, 12)
    const double[:, ::1] numbers,         # IN   (count, 4), the last: how far each factor reaches
    const floating[::1] coefficients,     # IN   of all factors
    double far,                           # IN   from where on tiles are compared by differences
    bint symmetric,                       # IN   Y is X: every pair of tiles once
    double[:, :, ::1] out,                # OUT  (I, TILE, width), zeros
    int n_threads,
):
    """out[i, q] = sum over j of k(x_i, y_j) V[j, q]; return how many pairs of tiles it took."""
    cdef Py_ssize_t n_rows = X.shape[0], n_columns = Y.shape[0], count = factors.shape[0]
    cdef Py_ssize_t size = scratch_size(X.shape[1], count, V.shape[2])
    cdef Py_ssize_t block = max(1, (n_rows + BLOCKS - 1) // BLOCKS) if symmetric else 1
    cdef Py_ssize_t n_blocks = (n_rows + block - 1) // block, seats = n_blocks + n_blocks % 2
    cdef Py_ssize_t turn, task, f, n_tasks, done = 0
    cdef Py_ssize_t turns = seats if symmetric else (n_rows + BLOCKS - 1) // BLOCKS
    # Of the rows of a block where symmetric, else of columns: so many at a time.
    cdef Py_ssize_t extent = block if symmetric else n_columns, start, end
    cdef Py_ssize_t part = max(<Py_ssize_t> 1, pairs_at_once(X.shape[1], count, V.shape[2])
                               // (BLOCKS // 2 * block if symmetric else BLOCKS))
    cdef Py_ssize_t pair[2]
    cdef gzk_factor known[MOST_FACTORS]
    cdef double reach[MOST_FACTORS]
    cdef Py_ssize_t rows[BLOCKS]
    cdef Py_ssize_t columns[BLOCKS]
    cdef floating *scratch
    agree(numbers.shape[0] >= count and numbers.shape[1] == 4, "factors and numbers")
    fill(known, factors, numbers, coefficients)
    check_tiles(known, count, X, X_centers, X_radii)
    check_tiles(known, count, Y, Y_centers, Y_radii)
    agree(Y.shape[1] == X.shape[1] and (n_columns == n_rows or not symmetric)
          and V.shape[0] == n_columns and V.shape[1] == GZK_TILE and out.shape[0] == n_rows
          and out.shape[1] == GZK_TILE and out.shape[2] == V.shape[2]
          and X_counts.shape[0] == n_rows, "tiles, V and out")
    if n_rows == 0 or n_columns == 0 or V.shape[2] == 0:
        return 0
    inside(&X_counts[0], n_rows, 1, GZK_TILE + 1, "X_counts")
    for f in range(count):
        reach[f] = numbers[f, 3]
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of kernel_product")
    try:
        for turn in range(turns):
            n_tasks = 0
            for task in range(n_blocks if turn == 0 else seats // 2) if symmetric else range(
                    min(BLOCKS, n_rows - turn * BLOCKS)):
                if not symmetric:
                    rows[n_tasks] = turn * BLOCKS + task
                    columns[n_tasks] = 0
                elif turn == 0:  # blocks meet themselves
                    rows[n_tasks] = columns[n_tasks] = task
                else:
                    match(turn - 1, task, seats, pair)
                    if pair[1] >= n_blocks:
                        continue
                    rows[n_tasks] = pair[0]
                    columns[n_tasks] = pair[1]
                n_tasks += 1
            for start in range(0, extent, part):
                end = min(extent, start + part)
                for task in prange(n_tasks, schedule="dynamic", chunksize=1, nogil=True,
                                   num_threads=n_threads):
                    done += multiply(
                        known, count, reach, far,
                        rows[task] * block + (start if symmetric else 0),
                        min(n_rows, rows[task] * block + (end if symmetric else 1)),
                        columns[task] * block if symmetric else start,
                        min(n_columns, (columns[task] + 1) * block) if symmetric else end,
                        symmetric, X_counts, X, X_centers, X_radii, Y, Y_centers, Y_radii, V, out,
                        scratch + threadid() * size)
                PyErr_CheckSignals()
    finally:
        gzk_free(scratch)
    return done


cdef inline Py_ssize_t occupied(const Py_ssize_t* order) noexcept nogil:
    """Count the rows of a tile, of which the last is repeated until it is full."""
    cdef Py_ssize_t count = GZK_TILE
    while count > 1 and order[count - 2] == order[count - 1]:
        count -= 1
    return count


cdef void matrix_row(
    const gzk_factor* factors, Py_ssize_t count, double far, Py_ssize_t row, bint symmetric,
    const floating[:, :, ::1] X, const double[:, ::1] X_centers, const double[:, ::1] X_radii,
    const Py_ssize_t[::1] X_order,
    const floating[:, :, ::1] Y, const double[:, ::1] Y_centers, const double[:, ::1] Y_radii,
    const Py_ssize_t[::1] Y_order, floating[:, ::1] out, floating* scratch,
) noexcept nogil:
    """Write the tiles of one row of tiles; where symmetric from the diagonal on, and across it."""
    cdef Py_ssize_t dim = X.shape[1], column, strip, i, j, r, start = row * GZK_TILE
    cdef Py_ssize_t first, rows = occupied(&X_order[start]), columns, done
    cdef const Py_ssize_t *row_of = &X_order[start]
    cdef const Py_ssize_t *column_of
    cdef floating *target
    cdef gzk_factor here[MOST_FACTORS]
    cdef floating *a = scratch + dim * GZK_TILE
    cdef floating *b = a + count * GZK_TILE
    cdef floating *buffer = b + count * GZK_TILE
    cdef unsigned before = gzk_flush_denormals()
    for column in range(row if symmetric else 0, Y.shape[0]):
        first = column * GZK_TILE
        column_of = &Y_order[first]
        columns = occupied(column_of)
        approach(factors, here, count, &X[row, 0, 0], &X_centers[row, 0], &X_radii[row, 0],
                 &Y[column, 0, 0], &Y_centers[column, 0], &Y_radii[column, 0], far, scratch, a, b)
        for strip in range((rows + GZK_STRIP - 1) // GZK_STRIP):
            i = strip * GZK_STRIP
            values(here, count, i, scratch, a, &Y[column, 0, 0], b,
                   buffer + GZK_STRIP * GZK_TILE, buffer)
            for r in range(min(GZK_STRIP, rows - i)):
                target = &out[row_of[i + r], 0]
                if column_of[columns - 1] - column_of[0] == columns - 1:  # they ascend
                    target += column_of[0]
                    for j in range(columns):
                        target[j] = buffer[r * GZK_TILE + j]
                else:
                    for j in range(columns):
                        target[column_of[j]] = buffer[r * GZK_TILE + j]
            if symmetric:
                for j in range(columns):
                    target = &out[column_of[j], 0]
                    done = min(GZK_STRIP, rows - i, first + j - start - i)
                    if row_of[rows - 1] - row_of[0] == rows - 1:
                        target += row_of[i]
                        for r in range(done):
                            target[r] = buffer[r * GZK_TILE + j]
                    else:
                        for r in range(done):
                            target[row_of[i + r]] = buffer[r * GZK_TILE + j]
    gzk_set_denormals(before)


def kernel_matrix(
    const floating[:, :, ::1] X,          # IN   (I, dim, TILE)
    const double[:, ::1] X_centers,       # IN   (I, dim)
    const double[:, ::1] X_radii,         # IN   (I, count)
    const Py_ssize_t[::1] X_order,        # IN   (I TILE,): rows, which ascend within a tile
    const floating[:, :, ::1] Y,          # IN   (J, dim, TILE)
    const double[:, ::1] Y_centers,       # IN   (J, dim)
    const double[:, ::1] Y_radii,         # IN   (J, count)
    const Py_ssize_t[::1] Y_order,        # IN   (J TILE,)
    const long long[:, ::1] factors,      # IN   (count, 12)
    const double[:, ::1] numbers,         # IN   (count, 4)
    const floating[::1] coefficients,     # IN   of all factors
    double far,                           # IN   from where on tiles are compared by differences
    bint symmetric,                       # IN   Y is X
    floating[:, ::1] out,                 # OUT  (n_rows, n_columns)
    int n_threads,
):
    """out[i, j] = k(x_i, y_j)."""
    cdef Py_ssize_t row, count = factors.shape[0], size = scratch_size(X.shape[1], count, 1)
    cdef Py_ssize_t n_rows = X.shape[0], start, end
    cdef Py_ssize_t step = max(<Py_ssize_t> n_threads, pairs_at_once(X.shape[1], count, 1)
                               // max(<Py_ssize_t> 1, Y.shape[0]))
    cdef gzk_factor known[MOST_FACTORS]
    cdef floating *scratch
    agree(numbers.shape[0] >= count and numbers.shape[1] == 4, "factors and numbers")
    fill(known, factors, numbers, coefficients)
    check_tiles(known, count, X, X_centers, X_radii)
    check_tiles(known, count, Y, Y_centers, Y_radii)
    agree(Y.shape[1] == X.shape[1] and (Y.shape[0] == n_rows or not symmetric)
          and X_order.shape[0] == n_rows * GZK_TILE and Y_order.shape[0] == Y.shape[0] * GZK_TILE,
          "tiles and orders")
    if n_rows == 0 or Y.shape[0] == 0:
        return
    inside(&X_order[0], X_order.shape[0], 1, out.shape[0], "X_order")
    inside(&Y_order[0], Y_order.shape[0], 1, out.shape[1], "Y_order")
    scratch = <floating*> gzk_alloc(n_threads * size * sizeof(floating))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of kernel_matrix")
    try:
        for start in range(0, n_rows, step):
            end = min(n_rows, start + step)
            for row in prange(start, end, schedule="dynamic", chunksize=1, nogil=True,
                              num_threads=n_threads):
                matrix_row(known, count, far, row, symmetric, X, X_centers, X_radii, X_order, Y,
                           Y_centers, Y_radii, Y_order, out, scratch + threadid() * size)
            PyErr_CheckSignals()
    finally:
        gzk_free(scratch)


cdef void slopes_row(
    const gzk_factor* factors, const gzk_factor* slopes, Py_ssize_t count, Py_ssize_t row,
    const double[:, :, ::1] X, const double[:, ::1] X_centers,
    const double[:, :, ::1] Y, const double[:, ::1] Y_centers,
    const double[:, :, ::1] A, const double[:, :, ::1] B, double* sums, double* scratch,
) noexcept nogil:
    """Add the sums of one row of tiles."""
    cdef Py_ssize_t dim = X.shape[1], column, i, k
    cdef double *a = scratch + dim * GZK_TILE
    cdef double *b = a + count * GZK_TILE
    for i in range(count * GZK_TILE):
        a[i] = factors[i // GZK_TILE].offset
        b[i] = 0
    for column in range(Y.shape[0]):
        for k in range(dim):
            move(&X[row, k, 0], X_centers[row, k] - Y_centers[column, k],
                 scratch + k * GZK_TILE)
        gzk_tile_slopes_f64(factors, slopes, count, scratch, a, &Y[column, 0, 0], b,
                            &A[row, 0, 0], &B[column, 0, 0], A.shape[2], sums,
                            b + count * GZK_TILE)


def kernel_slopes(
    const double[:, :, ::1] X,            # IN   (I, dim, TILE)
    const double[:, ::1] X_centers,       # IN   (I, dim)
    const double[:, :, ::1] Y,            # IN   (J, dim, TILE)
    const double[:, ::1] Y_centers,       # IN   (J, dim)
    const double[:, :, ::1] A,            # IN   (I, TILE, width)
    const double[:, :, ::1] B,            # IN   (J, width, TILE)
    const long long[:, ::1] factors,      # IN   (count, 12)
    const long long[:, ::1] slopes,       # IN   (count, 12): their derivatives by t
    const double[:, ::1] numbers,         # IN   (2 count, 4): of factors, and of slopes
    const double[::1] coefficients,       # IN   of all of them
    double[:, ::1] out,                   # OUT  (I, dim), of which the caller adds the rows
    int n_threads,
):
    """out[i, c]: sums of <A, B> times the slope times what t is of column c, for a tile of rows."""
    cdef Py_ssize_t row, count = factors.shape[0], size = scratch_size(X.shape[1], count, 1)
    cdef Py_ssize_t n_rows = X.shape[0], start, end
    cdef Py_ssize_t step = max(<Py_ssize_t> n_threads, pairs_at_once(X.shape[1], count, A.shape[2])
                               // max(<Py_ssize_t> 1, Y.shape[0]))
    cdef gzk_factor known[MOST_FACTORS]
    cdef gzk_factor steep[MOST_FACTORS]
    cdef double *scratch
    fill(known, factors, numbers, coefficients)
    fill(steep, slopes, numbers[count:], coefficients)
    scratch = <double*> gzk_alloc(n_threads * size * sizeof(double))
    if scratch == NULL:
        raise MemoryError("no memory for the scratch buffers of kernel_slopes")
    try:
        for start in range(0, n_rows, step):
            end = min(n_rows, start + step)
            for row in prange(start, end, schedule="dynamic", chunksize=1, nogil=True,
                              num_threads=n_threads):
                slopes_row(known, steep, count, row, X, X_centers, Y, Y_centers, A, B, &out[row, 0],
                           scratch + threadid() * size)
            PyErr_CheckSignals()
    finally:
        gzk_free(scratch)


def tile_rows():
    """Count the rows of a tile."""
    return GZK_TILE


def most_factors():
    """Return how many factors a kernel may have."""
    return MOST_FACTORS
