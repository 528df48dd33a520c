"""Every step of an agent refers to the one before it, for returns over two steps, and lets go of the one before that."""

from step_chain import Agent, main


class ShortSighted(Agent):
    def act(self, observation):
        reward = super().act(observation)
        if self.latest.before:
            self.latest.before.before = None
        return reward


main(ShortSighted())
