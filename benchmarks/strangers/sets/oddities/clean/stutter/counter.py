class StoppingCounter:
    """Counts epochs and ends the loop when the watched value has not got better for `patience` epochs."""

    def __init__(self, limit, patience, min_delta=1e-3):
        self.limit = limit
        self.patience = patience
        self.min_delta = min_delta
        self.current = 0
        self.best = float("inf")
        self.since = 0

    def __iter__(self):
        while self.current < self.limit:
            self.current += 1
            yield self.current

    def update(self, value):
        if value < self.best - self.min_delta:
            self.best, self.since = value, 0
        else:
            self.since += 1
        if self.since >= self.patience:
            self.current = self.limit
