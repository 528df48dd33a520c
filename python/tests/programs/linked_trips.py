"""Each trip of a robot refers to the one before. Its pictures are also in a replay buffer of bounded size."""

from collections import deque

import numpy as np
import torch
from small import EPOCHS, network, train_epoch

TRIPS = 40
PICTURES = 8


class Trip:
    def __init__(self, before=None):
        self.pictures = []
        self.before = before


class Robot:
    def __init__(self):
        self.random = np.random.default_rng(0)
        self.replay = deque(maxlen=3 * TRIPS * PICTURES)

    def ride(self, trip):
        for _ in range(PICTURES):
            picture = self.random.random(256)
            self.replay.append((picture, 1.0))
            trip.pictures.append(picture)

    def next_trip(self, last):
        return Trip(before=last)


def main(robot, epochs=EPOCHS):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    trip = Trip()
    for epoch in range(epochs):
        for _ in range(TRIPS):
            robot.ride(trip)
            trip = robot.next_trip(trip)  # leak
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


if __name__ == "__main__":
    main(Robot(), 2 * EPOCHS)
