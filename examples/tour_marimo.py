"""A model on Spyre, as a marimo notebook: `marimo edit examples/tour_marimo.py`; `pip install -e ".[notebook]"`."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo
    import torch

    import spyre_mlir

    return mo, spyre_mlir, torch


@app.cell
def _(mo):
    mo.md("""
    # A model on Spyre

    A softmax after a linear layer, compiled for as many rows as the slider says. What is below follows it.
    No card is needed: calls run on the hardware model.
    """)
    return


@app.cell
def _(mo):
    rows = mo.ui.slider(start=64, stop=512, step=64, value=64, label="rows", show_value=True)
    keep_float32 = mo.ui.checkbox(label="keep float32 on the device")
    mo.hstack([rows, keep_float32])
    return keep_float32, rows


@app.cell
def _(keep_float32, rows, spyre_mlir, torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.Softmax(-1)).eval()
    x = torch.randn(rows.value, 128)
    compiled = spyre_mlir.compile(model, (x,), keep_float32=keep_float32.value)
    compiled
    return compiled, model, x


@app.cell
def _(compiled, x):
    verified = compiled.verify(x)
    verified
    return (verified,)


@app.cell
def _(mo):
    mo.md("""
    ## Where the time goes
    """)
    return


@app.cell
def _(compiled):
    report = compiled.report()
    report
    return (report,)


@app.cell
def _(mo):
    mo.md("""
    ## Where the accuracy goes
    """)
    return


@app.cell
def _(compiled, x):
    accuracy = compiled.accuracy(x)
    accuracy
    return (accuracy,)


@app.cell
def _(mo):
    level = mo.ui.dropdown(options=["aten", "spyre.loop", "spyre.kernel", "superdsc"], value="aten", label="level")
    level
    return (level,)


@app.cell
def _(compiled, level, mo):
    text = compiled.mlir(level.value)
    mo.plain_text(text)
    return (text,)


if __name__ == "__main__":
    app.run()
