"""Deep Q-learning on a made game: a bar catches what falls. 20,000 steps, with gymnasium."""

import argparse
import random
import tempfile
import time
from collections import deque
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from torch import nn

SIDE = 12


class Catch(gym.Env):
    """A stone falls through a grid with some wind; the bar at the bottom moves left, right, or stays."""

    observation_space = gym.spaces.Box(0.0, 1.0, (SIDE * SIDE,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stone = [0, int(self.np_random.integers(SIDE))]
        self.bar = int(self.np_random.integers(SIDE))
        return self.picture(), {"caught": False}

    def picture(self):
        grid = np.zeros((SIDE, SIDE), np.float32)
        grid[self.stone[0], self.stone[1]] = 1.0
        grid[-1, max(self.bar - 1, 0) : self.bar + 2] = 0.5
        return grid.ravel()

    def step(self, action):
        self.bar = int(np.clip(self.bar + action - 1, 0, SIDE - 1))
        self.stone[0] += 1
        if self.np_random.random() < 0.1:
            self.stone[1] = int(np.clip(self.stone[1] + self.np_random.integers(-1, 2), 0, SIDE - 1))
        done = self.stone[0] == SIDE - 1
        caught = done and abs(self.stone[1] - self.bar) <= 1
        reward = (1.0 if caught else -1.0) if done else 0.0
        return self.picture(), reward, done, False, {"caught": caught, "bar": self.bar, "stone": tuple(self.stone)}


class Monitor(gym.Wrapper):
    """Counts what was caught, and can look back."""

    def __init__(self, env, look_back=False):
        super().__init__(env)
        self.look_back = look_back
        self.infos = []
        self.caught = deque(maxlen=200)

    def step(self, action):
        observation, reward, done, cut, info = super().step(action)
        if done:
            self.caught.append(info["caught"])
        if self.look_back:
            self.infos.append({**info, "action": action, "picture": observation})  # leak: infos
        return observation, reward, done, cut, info


class Episode:
    def __init__(self, start, before=None):
        self.pictures = [start]
        self.rewards = []
        self.before = before

    def add(self, picture, reward):
        self.pictures.append(picture)
        self.rewards.append(reward)


class Memory:
    """The newest transitions; those with large errors come up more often."""

    def __init__(self, capacity, seed, by_key=False):
        self.items = deque(maxlen=capacity)
        self.weights = np.ones(capacity)
        self.errors = {}
        self.by_key = by_key
        self.random = np.random.default_rng(seed)
        self.added = 0

    def add(self, transition):
        self.weights[self.added % len(self.weights)] = self.weights.max()
        self.items.append((self.added, transition))
        self.added += 1

    def sample(self, count):
        slots = np.array([key % len(self.weights) for key, _ in self.items])
        chances = self.weights[slots]
        chosen = self.random.choice(len(self.items), count, p=chances / chances.sum())
        keys, transitions = zip(*(self.items[position] for position in chosen))
        state, action, reward, following, done = (np.stack(part) for part in zip(*transitions))
        return keys, [torch.as_tensor(part) for part in (state, action, reward, following, done)]

    def update(self, keys, errors):
        for key, error in zip(keys, errors):
            self.weights[key % len(self.weights)] = float(error) + 0.01
            if self.by_key:
                self.errors[key] = error  # leak: priorities


class Agent:
    def __init__(self, leak):
        self.net, self.target = self.network(), self.network()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=5e-4)
        self.memory = Memory(2000, seed=5, by_key=leak == "priorities")
        self.random = random.Random(2)
        self.steps = 0

    def network(self):
        return nn.Sequential(nn.Linear(SIDE * SIDE, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 3))

    @torch.no_grad()
    def act(self, observation):
        if self.random.random() < max(0.05, 1 - self.steps / 6000):
            return self.random.randrange(3)
        return int(self.net(torch.from_numpy(observation)).argmax())

    def learn(self):
        keys, (state, action, reward, following, done) = self.memory.sample(32)
        with torch.no_grad():
            best = self.target(following).amax(1)
            goal = reward.float() + 0.97 * best * ~done
        value = self.net(state).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.update(keys, (value.detach() - goal).abs())
        if self.steps % 500 == 0:
            self.target.load_state_dict(self.net.state_dict())
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--size", type=int, default=1000, help="steps of an epoch")
    parser.add_argument("--leak", choices=["infos", "priorities", "episodes"])
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env = Monitor(Catch(), look_back=options.leak == "infos")
    agent = Agent(options.leak)
    observation, _ = env.reset(seed=11)
    episode = Episode(observation)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(1, options.epochs + 1):
            start, losses = time.perf_counter(), 0.0
            for _ in range(options.size):
                action = agent.act(observation)
                following, reward, done, _, _ = env.step(action)
                agent.memory.add((observation, action, reward, following, done))
                episode.add(following, reward)
                observation = following
                agent.steps += 1
                if len(agent.memory.items) >= 200:
                    losses += agent.learn()
                if done:
                    observation, _ = env.reset()
                    if options.leak == "episodes":
                        episode = Episode(observation, before=episode)  # leak: episodes
                    else:
                        episode = Episode(observation)
            torch.save(agent.net.state_dict(), Path(folder) / "agent.pt")
            caught, seconds = np.mean(env.caught), time.perf_counter() - start
            print(f"epoch {epoch}: loss {losses / options.size:.4f}, caught {caught:.2f}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
