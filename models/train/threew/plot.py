"""The loss and the validation figures of a training, as an SVG that any browser shows."""

WIDTH, HEIGHT, MARGIN = 640, 320, 40
COLORS = {"loss": "#c0392b", "r1": "#27ae60", "em3": "#2980b9", "em5": "#8e44ad"}


def plot(history: list[dict]) -> str:
    """Each series over the epochs; the loss is scaled to its largest value."""
    top_loss = max(entry["loss"] for entry in history)
    curves = []
    for place, (name, color) in enumerate(COLORS.items()):
        scale = top_loss if name == "loss" else 1.0
        points = " ".join(_point(i, len(history), entry[name] / scale) for i, entry in enumerate(history))
        curves.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        label = f"{name} (1 = {top_loss:.2f})" if name == "loss" else f"validation {name}"
        curves.append(f'<text x="{MARGIN + 8 + 150 * place}" y="20" fill="{color}">{label}</text>')
    mined = next((i for i, entry in enumerate(history) if entry["stage"] != history[0]["stage"]), None)
    if mined:
        x = _x(mined - 0.5, len(history))
        curves.append(f'<line x1="{x}" y1="{MARGIN}" x2="{x}" y2="{HEIGHT - MARGIN}" stroke="#999" stroke-dasharray="4"/>')
    box = f'<rect x="{MARGIN}" y="{MARGIN}" width="{WIDTH - 2 * MARGIN}" height="{HEIGHT - 2 * MARGIN}" fill="none" stroke="#999"/>'
    size = f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{box}{"".join(curves)}</svg>\n'


def _x(place: float, count: int) -> float:
    return round(MARGIN + (WIDTH - 2 * MARGIN) * (place + 0.5) / count, 1)


def _point(place: int, count: int, value: float) -> str:
    return f"{_x(place, count)},{round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * value, 1)}"
