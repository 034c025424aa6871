from .backbones import build_backbone
from .hooks import *  # noqa: F401,F403
from .registry import BACKBONES, HOOKS
from .runner import IterBasedRunner
