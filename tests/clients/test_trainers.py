"""Trainers and encoders of other packages run a compiled module, and give the numbers of eager mode."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from spyre_mlir import torch_compile
from tests.clients.installed import needs

TRAINING = {"training": True, "numerics": "exact"}

pytestmark = pytest.mark.slow(reason="trains and encodes with accelerate, lightning and sentence-transformers")


@pytest.fixture(autouse=True)
def forgotten() -> None:
    torch._dynamo.reset()
    torch_compile.forget()


def classifier() -> Any:
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=20, max_position_embeddings=16, **sizes)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    return transformers.BertForSequenceClassification(config)


def trained(model: Any, folder: Path) -> list[float]:
    """The losses of three steps of transformers' Trainer."""
    import transformers

    ids = torch.arange(96).reshape(12, 8) % 20
    data = [{"input_ids": row, "labels": row.sum() % 2} for row in ids]
    chosen = transformers.TrainingArguments(
        str(folder), max_steps=3, per_device_train_batch_size=4, logging_steps=1, save_strategy="no", use_cpu=True
    )
    trainer = transformers.Trainer(model=model, args=chosen, train_dataset=data)
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_transformers_trains_a_compiled_module(tmp_path: Path) -> None:
    needs("accelerate", "1", "accelerate")
    expected = trained(classifier(), tmp_path)
    model = classifier()
    model.compile(backend="spyre", options=TRAINING)
    assert trained(model, tmp_path) == pytest.approx(expected, abs=1e-4)
    assert {"_backward" in one.function for one in torch_compile.compilations()} == {True, False}


def test_accelerate_prepares_a_compiled_module() -> None:
    needs("accelerate", "1", "accelerate")
    from accelerate import Accelerator

    ids, model = torch.arange(16).reshape(2, 8), classifier().eval()
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        model.compile(backend="spyre", options={"numerics": "exact"})
        torch.testing.assert_close(Accelerator(cpu=True).prepare(model)(input_ids=ids).logits, expected)
    assert torch_compile.compilations()


def test_accelerate_itself_knows_no_other_back_end() -> None:
    """Once it does, the tutorial may say `torch_compile_backend="spyre"`."""
    needs("accelerate", "1", "accelerate")
    from accelerate.utils import TorchDynamoPlugin

    with pytest.raises(ValueError, match="'SPYRE' is not a valid DynamoBackend"):
        TorchDynamoPlugin(backend="spyre")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*does not have many workers:UserWarning")
def test_lightning_trains_a_compiled_module() -> None:
    needs("lightning", "2", "lightning")
    import lightning

    class Fitted(lightning.LightningModule):
        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net, self.losses = net, list[float]()

        def training_step(self, batch: Any, _: int) -> Any:
            loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
    data = torch.utils.data.TensorDataset(torch.randn(16, 8), torch.randn(16, 1))
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    losses: list[list[float]] = []
    for model in (Fitted(copy.deepcopy(net)), Fitted(torch.compile(net, backend="spyre", options=TRAINING))):
        trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **quiet)
        trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=4))
        losses.append(model.losses)
    assert len(losses[0]) == 4 and losses[1] == pytest.approx(losses[0], abs=1e-4)


def test_a_sentence_transformer_encodes(tmp_path: Path) -> None:
    needs("sentence-transformers", "6", "sentence-transformers")
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "sat", "on", "mat"]
    transformers.BertTokenizer(vocab={word: number for number, word in enumerate(words)}).save_pretrained(tmp_path)
    classifier().bert.save_pretrained(tmp_path)
    word = modules.Transformer(str(tmp_path), max_seq_length=16)
    encoder = SentenceTransformer(modules=[word, modules.Pooling(32), modules.Normalize()], device="cpu")
    texts = ["a cat sat on a mat", "a mat"]
    expected = encoder.encode(texts, convert_to_tensor=True)
    encoder.compile(backend="spyre", options={"numerics": "exact"})
    torch.testing.assert_close(encoder.encode(texts, convert_to_tensor=True), expected, atol=1e-5, rtol=1e-4)
    assert torch_compile.compilations()
