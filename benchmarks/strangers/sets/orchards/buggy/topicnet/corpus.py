import random

THEMES = ["sport", "space", "cars", "food"]


def write_like(theme, rng, n):
    """A fake post: common words plus words of its theme, zipf-like."""
    out = []
    for _ in range(n):
        r = rng.random()
        k = min(int(rng.paretovariate(0.7)), 400)
        out.append(f"the{k}" if r < 0.4 else f"{theme}{k}")
    return " ".join(out)


def load_posts(n, seed):
    rng = random.Random(seed)
    posts = []
    for i in range(n):
        label = rng.randrange(len(THEMES))
        posts.append((write_like(THEMES[label], rng, rng.randint(8, 40)), label))
    return posts


def portion(items, part, parts):
    per = len(items) // parts
    return items[part * per:(part + 1) * per]
