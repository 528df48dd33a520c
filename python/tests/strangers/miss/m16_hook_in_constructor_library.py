# hooks on a foreign module for every object, handles dropped; nobody in the project makes the objects in a loop
import torch


class Probe:
    def __init__(self, net, layers):
        self.net = net
        self.seen = {}
        for i, l in enumerate(layers):
            l.register_forward_hook(self.make(i))  # diagnostic: [hook-never-removed]

    def make(self, i):
        def hook(m, inp, out):
            self.seen[i] = inp[0]

        return hook
