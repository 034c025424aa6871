from .fitting import build, fit
