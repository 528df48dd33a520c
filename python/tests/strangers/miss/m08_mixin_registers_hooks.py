# the loop is in one base class, the hook registered per batch in the other (mixin); no object is made here
import torch


class Hooked:
    def keep(self, name):
        def hook(module, inp, out):
            self.acts[name] = out.detach()

        return hook

    def register(self):
        for n, m in self.net.named_modules():
            m.register_forward_hook(self.keep(n))  # diagnostic: [hook-never-removed]

    @torch.no_grad()
    def features(self, x, name):
        self.acts = {}
        self.register()
        self.net(x)
        return self.acts[name]


class Extractor:
    def run(self, batches, name):
        out = []
        for x in batches:
            out.append(self.features(x, name).cpu().numpy())
        return out


class Mine(Extractor, Hooked):
    def __init__(self, net):
        self.net = net
