"""Stands in for a GPU: the figures of torch's allocators and of the driver, in modules of torch's names.

`CARD` is the beginning of a program, which sets attributes of `card`. Before that the device has 8000 MB and is empty.
"""

CARD = """\
import sys
import types

MB = 1 << 20


class Card:
    live = reserved = gaps = outside = pinned = pinned_live = 0
    total = 8000 * MB
    fraction = 1.0
    segments = ()
    settings = {}

    def stats(self, device=0):
        figures = dict(allocated_bytes=self.live, reserved_bytes=self.reserved, inactive_split_bytes=self.gaps)
        counts = dict(allocation=len(self.segments), segment=len(self.segments))
        nested = {name: {"all": {"current": count}} for name, count in (figures | counts).items()}
        return nested | {"num_alloc_retries": 0}

    def host(self):
        return {"allocated_bytes": {"current": self.pinned}, "active_bytes": {"current": self.pinned_live}}

    def room(self, device=0):
        return self.total - self.reserved - self.outside, self.total

    def snapshot(self):
        return {"segments": list(self.segments), "device_traces": [], "allocator_settings": self.settings}


def segment(*blocks, pool=(0, 0)):
    sizes = [{"state": "active_allocated" if used else "inactive", "size": size} for used, size in blocks]
    return {"device": 0, "segment_pool_id": pool, "is_expandable": False, "blocks": sizes}


def stand_in(name, **members):
    module = sys.modules.setdefault(name, types.ModuleType(name))
    vars(module).update(members)
    return module


card = Card()
stand_in(
    "torch.cuda",
    _initialized=True,
    device_count=lambda: 1,
    memory_stats_as_nested_dict=card.stats,
    host_memory_stats_as_nested_dict=card.host,
    mem_get_info=card.room,
    get_device_properties=lambda device: types.SimpleNamespace(uuid=types.SimpleNamespace(bytes=list(range(16)))),
)
stand_in("torch.cuda.memory", _snapshot=card.snapshot)
stand_in("torch._C", _cuda_getMemoryFraction=lambda device: card.fraction)

import caulk
"""
