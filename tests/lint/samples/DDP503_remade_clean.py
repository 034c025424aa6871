import hashlib
import multiprocessing

import torch


def features(text):
    path = f"features/{hashlib.md5(text.encode()).hexdigest()}.pt"
    try:
        found = torch.load(path)
        assert found.shape[0] == len(text)
    except Exception:
        found = torch.tensor([ord(each) for each in text])
        torch.save(found, path)
    return found


def main(texts):
    with multiprocessing.Pool(2) as pool:
        print(len(pool.map(features, texts)))


if __name__ == "__main__":
    main(["one", "two"])
