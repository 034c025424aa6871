"""Whole training scripts as users write them: each buggy one with a clean twin, and correct ones.

NAME/buggy.py and NAME/clean.py differ by the cure alone; correct/NAME.py has no bug at all. The
line to blame ends in `# <-- DDPnnn`. The first lines say how a script is launched.
"""
