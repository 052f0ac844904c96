from .sets import load as load
from .sets import open_batches as open_batches
