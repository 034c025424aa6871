import submitit


def place():
    environment = submitit.JobEnvironment()
    print(environment.local_rank)


if __name__ == "__main__":
    place()
