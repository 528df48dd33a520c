class Gauge:
    def __init__(self, decay=0.9):
        self.decay = decay
        self.mean = 0

    def update(self, v):
        self.mean = self.decay * self.mean + (1 - self.decay) * v  # diagnostic: [loss-kept-with-graph]
