from elr import build, fit
from elr.setup import Dist

if __name__ == "__main__":
    with Dist() as d:
        fit(*build(d), d)
