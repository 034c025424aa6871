from .nets import *  # noqa: F403
