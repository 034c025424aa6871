import os

from lm.launch import spawn

if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    spawn(2)
