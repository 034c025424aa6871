import argparse
import tempfile

from callbacks import History, JobBudget
from engine import Engine, Strategy
from task import WindForecast


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--budget", type=float, default=2.0, help="seconds of training")
    ap.add_argument("--max_steps", type=int, default=200000)
    ap.add_argument("--root", default=None)
    args = ap.parse_args()

    strategy = Strategy()
    root = args.root or tempfile.mkdtemp(prefix="wind_")
    engine = Engine(
        strategy,
        callbacks=[History(), JobBudget(args.budget)],
        root=root,
        max_steps=args.max_steps,
    )
    engine.fit(WindForecast())
    strategy.teardown()


if __name__ == "__main__":
    main()
