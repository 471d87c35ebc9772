"""Draws what `embertable-bench sweep --csv` wrote: lookups a second over each factor, limits of all bytes dashed.

Usage: plot_sweep.py CSV PICTURE        (PICTURE ends with .svg, .png or .pdf; needs matplotlib: pip install matplotlib)
"""

import csv
import sys


def draw(points):
    import matplotlib.pyplot as plt  # here, so that the usage can be read without it

    plt.rcParams["svg.fonttype"] = "none"  # letters, and not their outlines
    factors = list(dict.fromkeys(point["factor"] for point in points))
    rows = -(-len(factors) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(11, 2.8 * rows + 0.4), squeeze=False, layout="constrained")
    for panel in axes.flat[len(factors):]:
        panel.remove()
    for factor, panel in zip(factors, axes.flat):
        of_factor = [point for point in points if point["factor"] == factor]
        for number, threads in enumerate(sorted({int(point["threads"]) for point in of_factor})):
            line = sorted((float(p["value"]), float(p["lookups_per_s"]) / 1e6, float(p["limit_all_bytes_per_s"]) / 1e6)
                          for p in of_factor if int(p["threads"]) == threads)
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
    with open(source, encoding="utf-8", newline="") as file:
        draw(list(csv.DictReader(file))).savefig(picture)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
