"""Two towers on Gowalla's visits: places ranked for users. Usage: two_tower_gowalla.py DATA [--validate]

Rate, temperature and the loss were chosen with --validate, which leaves a tenth of the visits out of the training and prints the
recall of those. It still rises after these epochs.
"""

import gzip
import sys
import time

import torch

import embertable as et
import embertable.torch as ett

DIM, BATCH, EPOCHS, RATE, TEMPERATURE = 64, 512, 12, 0.2, 0.1


def read(path):
    """Pairs [n, 2] of a user and a place, by user."""
    with gzip.open(path, "rt") as lines:
        rows = [list(map(int, line.split())) for line in lines]
    return torch.tensor([(row[0], place) for row in rows for place in row[1:]])


class Tower(torch.nn.Module):
    """A table, and a layer on top that begins as the identity. Vectors have length 1."""

    def __init__(self, rows):
        super().__init__()
        self.table = ett.Embedding(rows, DIM, optimizer=et.Adagrad(RATE, initial_accumulator_value=0.01),
                                   initializer=et.Initializer.normal(0, 0.1))
        self.layer = torch.nn.Linear(DIM, DIM)
        torch.nn.init.zeros_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)

    def forward(self, ids):
        rows = self.table(ids)
        return torch.nn.functional.normalize(rows + self.layer(rows), dim=-1)


def train_epoch(users, places, optimizer, pairs):
    """A softmax over the places of the batch. They are drawn as often as they are visited, which `correction` takes out."""
    frequency = torch.bincount(pairs[:, 1], minlength=places.table.num_embeddings) / len(pairs)
    correction = -torch.log(frequency)
    for batch in torch.randperm(len(pairs)).split(BATCH):
        user, place = pairs[batch].T.contiguous()
        scores = torch.addmm(correction[place], users(user) / TEMPERATURE, places(place).T)
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(batch)), reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def recall(users, places, known, wanted, k=20):
    """The share of a user's wanted places among the best k of those that are not known, as a mean over users."""
    users.eval(), places.eval()
    user_count, place_count = users.table.num_embeddings, places.table.num_embeddings
    vectors = places(torch.arange(place_count)).T.contiguous()
    of_user, all_wanted = (torch.bincount(pairs[:, 0], minlength=user_count) for pairs in (known, wanted))
    ends, right = of_user.cumsum(0), wanted[:, 0] * place_count + wanted[:, 1]
    found = torch.zeros(user_count)
    for part in torch.arange(user_count).split(1024):
        scores = users(part) @ vectors
        seen = known[ends[part[0]] - of_user[part[0]]:ends[part[-1]]]
        scores[seen[:, 0] - part[0], seen[:, 1]] = -torch.inf
        found[part] = torch.isin(part[:, None] * place_count + scores.topk(k).indices, right).sum(1).float()
    users.train(), places.train()
    return float((found / all_wanted.clamp(min=1))[all_wanted > 0].mean())


def main():
    torch.manual_seed(1)
    known, wanted = (read(f"{sys.argv[1]}/gowalla/{part}.txt.gz") for part in ("train", "test"))
    users, places = map(Tower, (torch.cat([known, wanted]).amax(0) + 1).tolist())
    if "--validate" in sys.argv:
        left_out = torch.rand(len(known)) < 0.1
        known, wanted = known[~left_out], known[left_out]
    optimizer = torch.optim.Adam([*users.parameters(), *places.parameters()], 1e-3)
    seconds = 0
    for epoch in range(EPOCHS):
        begin = time.perf_counter()
        train_epoch(users, places, optimizer, known)
        seconds += time.perf_counter() - begin
        if "--validate" in sys.argv:
            print(f"epoch {epoch + 1}: {seconds:.0f} s, recall@20 of what was left out {recall(users, places, known, wanted):.4f}", flush=True)
    in_tables = (users.table.seconds + places.table.seconds) / seconds
    print(f"{seconds:.1f} s: tables {in_tables:.0%}, the rest torch; recall@20 {recall(users, places, known, wanted):.4f}")


if __name__ == "__main__":
    main()
