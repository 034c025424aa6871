import talk

if __name__ == "__main__":
    talk.setup()
