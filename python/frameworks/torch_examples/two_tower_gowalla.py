"""Two towers on Gowalla's visits: places ranked for users. Usage: two_tower_gowalla.py DATA"""

import gzip
import sys
import time

import numpy as np
import torch

import embertable as et
import embertable.torch as ett

DIM, BATCH, NEGATIVES, EPOCHS = 64, 2048, 1024, 12


def read(path):
    """Pairs [n, 2] of a user and a place."""
    with gzip.open(path, "rt") as lines:
        rows = [list(map(int, line.split())) for line in lines]
    return torch.tensor([(row[0], place) for row in rows for place in row[1:]])


class Tower(torch.nn.Module):
    """A table, and a layer on top that begins as the identity."""

    def __init__(self, rows, rate):
        super().__init__()
        self.table = ett.Embedding(rows, DIM, optimizer=et.Adagrad(rate, initial_accumulator_value=0.01),
                                        initializer=et.Initializer.normal(0, 0.1))
        self.layer = torch.nn.Linear(DIM, DIM)
        torch.nn.init.zeros_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)

    def forward(self, ids):
        rows = self.table(ids)
        return torch.nn.functional.normalize(rows + self.layer(rows), dim=-1)


def train_epoch(users, places, optimizer, pairs, temperature=0.12):
    frequency = torch.bincount(pairs[:, 1]).float() / len(pairs)
    for batch in torch.randperm(len(pairs)).split(BATCH):
        user, place = pairs[batch].T
        # Of the batch's own places some are the others' wrong answers. What is often there counts less for it.
        drawn = place[torch.randperm(len(place))[:NEGATIVES]]
        vectors = places(torch.cat([place, drawn]))
        mine, others = vectors[:len(place)], vectors[len(place):]
        user_vectors = users(user)
        right = (user_vectors * mine).sum(1, keepdim=True) / temperature
        wrong = user_vectors @ others.T / temperature - 0.5 * torch.log(frequency[drawn] * NEGATIVES)
        wrong = wrong.masked_fill(drawn == place[:, None], -1e9)
        loss = torch.logsumexp(torch.cat([right, wrong], 1), 1).sum() - right.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def recall(users, places, known, wanted, k=20):
    user_count, place_count = int(known[:, 0].max()) + 1, places.table.num_embeddings
    all_places = places.eval()(torch.arange(place_count))
    users.eval()
    first, rows = torch.bincount(known[:, 0], minlength=user_count).cumsum(0), torch.bincount(wanted[:, 0], minlength=user_count)
    has = torch.zeros(user_count, dtype=torch.float64)
    is_wanted = set(map(tuple, wanted.tolist()))
    for part in torch.arange(user_count).split(2048):
        scores = users(part) @ all_places.T
        seen = known[int(first[part[0]] - torch.bincount(known[:, 0])[part[0]]):int(first[part[-1]])]
        scores[seen[:, 0] - part[0], seen[:, 1]] = -torch.inf
        for user, best in zip(part.tolist(), scores.topk(k).indices.tolist()):
            has[user] = sum((user, place) in is_wanted for place in best)
    users.train(), places.train()
    return float((has / rows.clamp(min=1))[rows > 0].mean())


def main():
    torch.manual_seed(1)
    known, wanted = (read(f"{sys.argv[1]}/gowalla/{part}.txt.gz") for part in ("train", "test"))
    sizes = torch.cat([known, wanted]).amax(0) + 1
    users, places = Tower(int(sizes[0]), 0.1), Tower(int(sizes[1]), 0.1)
    optimizer = torch.optim.Adam([*users.parameters(), *places.parameters()], 1e-3)
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        train_epoch(users, places, optimizer, known)
        if "--every" in sys.argv:
            print(epoch, f"{time.perf_counter() - begin:.0f} s", recall(users, places, known, wanted), flush=True)
    seconds = time.perf_counter() - begin
    in_tables = (users.table.seconds + places.table.seconds) / seconds
    print(f"{seconds:.1f} s: tables {in_tables:.0%}, the rest torch; recall@20 {recall(users, places, known, wanted):.4f}")


if __name__ == "__main__":
    main()
