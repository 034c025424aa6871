from accelerate import Accelerator
from accelerate.utils import DummyOptim
from transformers import AutoModelForCausalLM


def main(batches):
    accelerator = Accelerator()
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    optimizer = DummyOptim(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    model.gradient_checkpointing_enable()
    for batch in batches:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main([])
