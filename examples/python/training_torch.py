"""What training.py has of PyTorch."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.dlpack import from_dlpack


def torch_trainer(features: int) -> Callable[[Any], float]:
    """Logistic regression: a step that is little work for its data. Gives a function from a batch to its loss."""
    weights = torch.zeros(features, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=3)
    loss_of = torch.nn.BCEWithLogitsLoss()

    def train(batch: Any) -> float:
        # A tensor of the ring is taken as it lies there, and given back when no torch.Tensor shows it any more.
        if isinstance(batch, np.ndarray):
            batch = torch.from_numpy(batch)
        elif not isinstance(batch, torch.Tensor):
            batch = from_dlpack(batch)
        optimizer.zero_grad()
        loss = loss_of(batch[:, 1:] @ weights, batch[:, 0])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return train


class Batches(IterableDataset):  # type: ignore[type-arg]
    """The batches that `make(plan)` gives, made in the worker."""

    def __init__(self, make: Callable[[Any], Iterator[np.ndarray]], plan: Any) -> None:
        self.make = make
        self.plan = plan

    def __iter__(self) -> Iterator[torch.Tensor]:
        return map(torch.from_numpy, self.make(self.plan))


def loader(make: Callable[[Any], Iterator[np.ndarray]], plan: Any) -> Iterator[torch.Tensor]:
    """A DataLoader with one worker that is four batches ahead."""
    return iter(DataLoader(Batches(make, plan), batch_size=None, num_workers=1, prefetch_factor=4))
