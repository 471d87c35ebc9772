"""A GRU on beauty products: what people buy next. Usage: gru_beauty.py DATA [--validate]

The last item of each user is predicted. The tables' rate and the number of epochs were chosen with --validate, which leaves these
items out: it predicts the ones before them, learns from those before that, and stops where it gets no better for two epochs.
"""

import gzip
import sys
import time

import torch

import embertable as et
import embertable.torch as ett

DIM, BATCH, LENGTH, NEGATIVES = 64, 128, 20, 1024
EPOCHS, RATE, TABLE_RATE = 13, 5e-3, 0.2


def read(path):
    with gzip.open(path, "rt") as lines:
        return [list(map(int, line.split()))[1:] for line in lines]


def padded(lists):
    """Ids [n, LENGTH], the last ones of each list, zeros before them."""
    return torch.tensor([[0] * (LENGTH - len(items[-LENGTH:])) + items[-LENGTH:] for items in lists])


class Next(torch.nn.Module):
    def __init__(self, items):
        super().__init__()
        options = dict(optimizer=et.Adagrad(TABLE_RATE, initial_accumulator_value=0.01), padding_idx=0,
                       initializer=et.Initializer.normal(0, 0.05))
        self.bought, self.next = ett.Embedding(items, DIM, **options), ett.Embedding(items, DIM, **options)
        self.dropout = torch.nn.Dropout(0.3)
        self.gru, self.layer = torch.nn.GRU(DIM, 2 * DIM, batch_first=True), torch.nn.Linear(2 * DIM, DIM)

    def forward(self, history):
        rows = self.dropout(self.bought(history))
        found, _ = self.gru(rows)
        return rows + self.layer(self.dropout(found))


def train_epoch(model, optimizer, histories, targets, items):
    for batch in torch.randperm(len(histories)).split(BATCH):
        wanted = targets[batch]
        there = wanted > 0
        found, wanted = model(histories[batch])[there], wanted[there]
        drawn = torch.randint(1, items, (NEGATIVES,))
        rows = model.next(torch.cat([wanted, drawn]))
        right = (found * rows[:len(wanted)]).sum(1, keepdim=True)
        wrong = (found @ rows[len(wanted):].T).masked_fill(drawn == wanted[:, None], -1e9)
        loss = (torch.logsumexp(torch.cat([right, wrong], 1), 1) - right[:, 0]).sum() / BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def hit_rate(model, lists, items, k=10):
    model.eval()
    rows = model.next(torch.arange(items))
    hits = 0
    for first in range(0, len(lists), 512):
        part = lists[first:first + 512]
        scores = model(padded([one[:-1] for one in part]))[:, -1] @ rows.T
        scores[:, 0] = -torch.inf
        for line, one in enumerate(part):
            had = [item for item in one[:-1] if item != one[-1]]
            scores[line, had] = -torch.inf
        wanted = torch.tensor([one[-1] for one in part])
        hits += int((scores.topk(k).indices == wanted[:, None]).sum())
    model.train()
    return hits / len(lists)


def main():
    torch.manual_seed(1)
    lists = read(f"{sys.argv[1]}/amazon-seq/Beauty.txt.gz")
    items = max(map(max, lists)) + 1
    validate = "--validate" in sys.argv
    if validate:
        lists = [one[:-1] for one in lists]
    histories, targets = padded([one[:-2] for one in lists]), padded([one[1:-1] for one in lists])
    model = Next(items)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    rates, seconds = [], 0
    for epoch in range(30 if validate else EPOCHS):
        begin = time.perf_counter()
        train_epoch(model, optimizer, histories, targets, items)
        seconds += time.perf_counter() - begin
        if validate:
            rates.append(hit_rate(model, lists, items))
            print(f"epoch {epoch + 1}: {seconds:.0f} s, hr@10 of the items before the last {rates[-1]:.4f}", flush=True)
            if epoch - rates.index(max(rates)) == 2:
                break
    print(f"{seconds:.1f} s: tables {(model.bought.seconds + model.next.seconds) / seconds:.0%}, the rest torch; "
          f"hr@10 {hit_rate(model, lists, items):.4f}")


if __name__ == "__main__":
    main()
