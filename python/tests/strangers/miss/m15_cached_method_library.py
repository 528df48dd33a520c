# nobody in the project makes these objects in a loop (a library)
from functools import lru_cache

import torch


class Data(torch.utils.data.Dataset):
    def __init__(self, table):
        self.table = table

    @property
    @lru_cache(None)  # diagnostic: [cached-method]
    def names(self):
        return list(self.table)

    def __getitem__(self, i):
        return self.table[i], self.names
