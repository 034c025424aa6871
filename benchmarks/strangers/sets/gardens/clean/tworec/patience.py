class Patience:
    def __init__(self, limit, min_delta=0.002):
        self.limit = limit
        self.min_delta = min_delta
        self.top = -1.0
        self.bad = 0

    def exhausted(self, value):
        if value > self.top + self.min_delta:
            self.top, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit
