"""Learns to reach with an arm: forward kinematics in the loss, inverse kinematics as a check (needs pytorch-kinematics).

As people write it: errors are kept with their graphs, solutions whole, and the arm is made anew in every epoch, which caches
on its methods keep. `--mended` is the same without that, and does the cleanup that people promise themselves much of.
"""

import argparse
from pathlib import Path

import caulk
import pytorch_kinematics as pk
import torch
from torch import nn

JOINTS = 7
LINKS = "".join(f'<link name="l{i}"/>' for i in range(JOINTS + 1))
TURNS = "".join(
    f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="0 0 0.2"/>'
    f'<axis xyz="{1 - i % 2} 0 {i % 2}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
    for i in range(JOINTS)
)
ARM = f'<robot name="arm">{LINKS}{TURNS}</robot>'


class Reaching:
    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(3, 256), nn.Tanh(), nn.Linear(256, JOINTS))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)
        self.errors = []
        self.solutions = []
        self.solved = 0
        self.equip()

    def equip(self):
        self.arm = pk.build_serial_chain_from_urdf(ARM.encode(), f"l{JOINTS}")
        limits = torch.tensor(self.arm.get_joint_limits()).T
        self.solver = pk.PseudoInverseIK(self.arm, joint_limits=limits, num_retries=8, max_iterations=4, lr=0.3)

    def miss(self, goals):
        """By how far the hand misses each goal, in metres."""
        reached = self.arm.forward_kinematics(self.policy(goals)).get_matrix()[:, :3, 3]
        return (reached - goals).norm(dim=1)

    def learn(self, goals):
        self.optimizer.zero_grad()
        self.miss(goals).mean().backward()
        self.optimizer.step()

    def solve(self, goals):
        solution = self.solver.solve(pk.Transform3d(pos=goals))
        self.solved += int(solution.converged_any.sum())
        return solution

    def check(self, goals):
        self.errors.append(self.miss(goals).mean())
        self.solutions.append(self.solve(goals[:64]))

    def begin_epoch(self):
        self.equip()

    def end_epoch(self):
        pass


class Mended(Reaching):
    def check(self, goals):
        with torch.no_grad():
            self.errors.append(self.miss(goals).mean().item())
        caulk.clear_tensors(self.solve(goals[:64]))

    def begin_epoch(self):
        self.errors.clear()

    def end_epoch(self):
        caulk.clear_caches(self.arm)
        caulk.aggressive_gc(passes=1)


def resident():
    """Resident memory in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--mended", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    reaching = Mended() if arguments.mended else Reaching()
    for epoch in range(arguments.epochs):
        reaching.begin_epoch()
        for step in range(arguments.steps):
            reaching.learn(torch.rand(512, 3) - 0.3)
            if step % 6 == 5:
                reaching.check(torch.rand(1024, 3) * 0.5)
        reaching.end_epoch()
        level = sum(float(torch.as_tensor(error).detach()) for error in reaching.errors) / len(reaching.errors)
        print(f"epoch {epoch}: misses by {level:.4f} m, {reaching.solved} solved, {resident():.0f} MB", flush=True)


main()
