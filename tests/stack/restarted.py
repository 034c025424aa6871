"""A training that torchrun starts, and starts again: its first attempt is killed.

torchrun --max-restarts=1 restarted.py FOLDER OPTIONS
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.stack.bodies import train_toy

folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
first, rank = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0", os.environ["RANK"]
if not (first and rank == "1"):
    options.pop("kill_after")
result = train_toy(str(folder / "out"), resume=True, **options)
(folder / f"rank{rank}.json").write_text(json.dumps(result))
