"""Draws what `embertable-bench sweep --json` printed: lookups a second over each factor, limits of all bytes dashed.

Usage: plot_sweep.py JSON PICTURE        (PICTURE ends with .svg, .png or .pdf; needs matplotlib)
"""

import json
import sys

import matplotlib.pyplot as plt


def draw(points):
    factors = list(dict.fromkeys(point["factor"] for point in points))
    rows = -(-len(factors) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(11, 2.8 * rows + 0.4), squeeze=False, layout="constrained")
    for panel in axes.flat[len(factors):]:
        panel.remove()
    for factor, panel in zip(factors, axes.flat):
        of_factor = [point for point in points if point["factor"] == factor]
        for number, threads in enumerate(sorted({point["threads"] for point in of_factor})):
            line = sorted((p["value"], p["step"] / 1e6, p["step_limit_all_bytes"] / 1e6) for p in of_factor
                          if p["threads"] == threads)
            values, rates, limits = zip(*line)
            color = f"C{number}"
            panel.plot(values, rates, "o-", color=color, markersize=3, label=f"{threads} thread{'s' * (threads > 1)}")
            panel.plot(values, limits, "--", color=color, alpha=0.6)
        panel.set(title=factor, yscale="log", xscale="linear" if factor == "zipf" else "log")
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    figure.supylabel("million lookups a second; dashed: all bytes", fontsize="medium")
    return figure


def main(source, picture):
    with open(source, encoding="utf-8") as file:
        points = [json.loads(line) for line in file if line.startswith("{")]
    draw(points).savefig(picture)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
