from .reproduce import EXPERIMENTS as EXPERIMENTS
from .reproduce import Result as Result
from .reproduce import choose as choose
from .reproduce import run as run
