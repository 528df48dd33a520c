"""Self-play with a small tree search; the subtree of the move that was played becomes the next root."""

import torch
from torch import nn

MOVES = 5


class Node:
    def __init__(self, state, parent=None, prior=1.0):
        self.state = state
        self.parent = parent
        self.prior = prior
        self.children = {}
        self.visits = 0
        self.value = 0.0

    def best_child(self):
        return max(
            self.children,
            key=lambda m: (
                self.children[m].value / (1 + self.children[m].visits)
                + self.children[m].prior / (1 + self.children[m].visits)
            ),
        )


class World(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.move = nn.Embedding(MOVES, width)
        self.value, self.policy = nn.Linear(width, 1), nn.Linear(width, MOVES)

    def next_state(self, state, move):
        return torch.tanh(0.8 * state + self.move.weight[move])


class Player:
    def __init__(self, world):
        self.world = world
        self.root = Node(torch.zeros(2048))

    @torch.no_grad()
    def search(self, simulations=10):
        for _ in range(simulations):
            node = self.root
            while node.children:
                node = node.children[node.best_child()]
            priors = self.world.policy(node.state).softmax(0).tolist()
            for move, prior in enumerate(priors):
                node.children[move] = Node(self.world.next_state(node.state, move), node, prior)
            value = self.world.value(node.state).item()
            while node is not None:
                node.visits += 1
                node.value += value
                node = node.parent

    def play(self):
        self.search()
        move = max(self.root.children, key=lambda m: self.root.children[m].visits)
        before = self.root.state
        self.root = self.root.children[move]  # diagnostic: [unbounded-history]
        return before, move


def main(epochs=12, turns=10):
    torch.manual_seed(15)
    world = World()
    opt = torch.optim.SGD(world.parameters(), lr=0.01)
    player = Player(world)
    for epoch in range(1, epochs + 1):
        states, moves = zip(*(player.play() for _ in range(turns)))
        states, moves = torch.stack(states), torch.tensor(moves)
        loss = (
            nn.functional.cross_entropy(world.policy(states), moves)
            + (world.value(states) - states.mean()).pow(2).mean()
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
