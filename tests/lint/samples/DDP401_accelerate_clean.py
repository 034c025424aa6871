from accelerate import Accelerator


def main(values):
    accelerator = Accelerator()
    everything = accelerator.gather(values)
    if accelerator.is_main_process:
        print(everything)
    accelerator.wait_for_everyone()
