import logging
import os

logging.basicConfig(format="%(message)s", level=logging.INFO if int(os.getenv("RANK", -1)) in (-1, 0) else logging.WARN)
LOGGER = logging.getLogger("toyyolo")


def colorstr(s):
    return f"\033[34m\033[1m{s}\033[0m"
