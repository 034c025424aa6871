"""Everyone waits, and the first rank, as accelerate's state knows it, says so."""

from accelerate import Accelerator


def main():
    accelerator = Accelerator()
    accelerator.wait_for_everyone()
    if accelerator.state.is_main_process:
        print("everyone is here")


if __name__ == "__main__":
    main()
