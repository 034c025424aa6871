import sys

from phon.loop import Runner
from phon.settings import Settings

if __name__ == "__main__":
    Runner(Settings.from_cli(sys.argv[1:])).run()
