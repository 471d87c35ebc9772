"""The model of dlrm_criteo.py in PyTorch Lightning. Usage: lightning_criteo.py DATA"""

import sys
import time
import warnings

import lightning
import torch

import dlrm_criteo as clicks


class Clicks(lightning.LightningModule):
    def __init__(self, sizes):
        super().__init__()
        self.model = clicks.Dlrm(clicks.make_tables(sizes), len(sizes))
        self.scores, self.labels = [], []

    def training_step(self, batch, index):
        labels, dense, ids = batch
        logits, rows = self.model(dense, ids)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        return loss + 0.0015 * rows.square().sum()

    def test_step(self, batch, index):
        labels, dense, ids = batch
        self.scores.append(self.model(dense, ids)[0])
        self.labels.append(labels)

    def configure_optimizers(self):  # of the dense part: the tables have their own
        return torch.optim.Adagrad(self.parameters(), 0.01, initial_accumulator_value=0.01, fused=True)


class Batches(torch.utils.data.Dataset):
    """Whole batches: a sample at a time, Python would take longer than the training."""

    def __init__(self, labels, dense, ids, shuffle):
        order = torch.randperm(len(labels)) if shuffle else torch.arange(len(labels))
        self.data, self.batches = (labels, dense, ids), order.split(clicks.BATCH)

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return tuple(part[self.batches[index]] for part in self.data)


def main():
    torch.manual_seed(1)
    labels, dense, ids, sizes = clicks.read(sys.argv[1] + "/criteo/criteo_sample.tsv.gz")
    test = clicks.is_test(len(labels))
    loaders = [torch.utils.data.DataLoader(Batches(labels[part], dense[part], ids[part], part is not test), batch_size=None)
               for part in (~test, test)]
    module = Clicks(sizes)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    begin = time.perf_counter()
    trainer.fit(module, loaders[0])
    seconds = time.perf_counter() - begin
    in_tables = module.model.tables.seconds
    trainer.test(module, loaders[1], verbose=False)
    found = clicks.auc(torch.cat(module.scores), torch.cat(module.labels))
    print(f"{seconds:.1f} s: tables {in_tables / seconds:.0%}, the rest torch and Lightning; test AUC {found:.4f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
