"""A data-loader worker that is told to end, by somebody else and by its rank.

python -m tests.stack.signalled_worker METHOD
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from ddpdoctor.stack.stopping import heed_only_the_parent


def work(ready: Connection) -> None:
    heed_only_the_parent(0)
    ready.send("now")
    time.sleep(60)


def is_pending(pid: int, number: signal.Signals) -> bool:
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return bool(int(status["ShdPnd"], 16) & 1 << (number - 1))


def main(method: str) -> None:
    start = multiprocessing.get_context(method)
    ready, tell = start.Pipe(duplex=False)
    worker = start.Process(target=work, args=(tell,))  # type: ignore[attr-defined]
    worker.start()
    assert ready.recv() == "now"
    by_somebody_else = f"import os; os.kill({worker.pid}, {signal.SIGTERM:d})"
    subprocess.run([sys.executable, "-c", by_somebody_else], check=True)
    while is_pending(worker.pid, signal.SIGTERM):  # or it would be one with the next
        time.sleep(0.01)
    assert worker.is_alive()
    os.kill(worker.pid, signal.SIGTERM)
    worker.join(30)
    assert worker.exitcode == 0


if __name__ == "__main__":
    main(sys.argv[1])
