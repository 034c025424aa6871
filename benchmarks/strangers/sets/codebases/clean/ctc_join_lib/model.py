import torch.nn as nn
import torch.nn.functional as F


class CTCModel(nn.Module):
    def __init__(self, vocab, input_dim, output_size, num_layers):
        super().__init__()
        self.encoder = nn.GRU(input_dim, output_size, num_layers, batch_first=True)
        self.ctc_lo = nn.Linear(output_size, vocab)

    def forward(self, feats, feats_lengths, target, target_lengths):
        hidden, _ = self.encoder(feats)
        logp = self.ctc_lo(hidden).log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(logp, target, feats_lengths, target_lengths, zero_infinity=True)


def init_model(configs):
    return CTCModel(configs["vocab_size"], configs["dataset_conf"]["input_dim"], **configs["encoder_conf"])
