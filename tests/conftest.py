"""One thread: tiny matrices are several times faster without a second one."""

import torch

torch.set_num_threads(1)
