"""Launch and rendezvous."""
