# ruff: noqa: E501  # a table is read by its columns, and a source's title is not ours to wrap
"""The GPUs that are known: published dense peaks, one row each. Data, and nothing else.

Columns of `ROWS`: memory in MiB as NVML shows it (or nominal), memory bandwidth in GB/s, dense
TFLOP/s (TOP/s for int8) by dtype, SM or CU count, highest SM clock in MHz, link bandwidth in
one direction in GB/s (NVLink or Infinity Fabric, 0 without), PCIe generation, board watts.
A dash is a figure that the part does not have or that nobody published.
"""

ROWS = """\
key               vendor arch            mib    gb/s fp32  tf32  fp16   fp8    int8   fp4     sms mhz  link  pcie watts
v100-sxm2-16      nvidia Volta           16384  900  15.7  -     125    -      -      -       80  1530 150   3    300
v100-sxm2-32      nvidia Volta           32768  900  15.7  -     125    -      -      -       80  1530 150   3    300
v100-pcie         nvidia Volta           32768  900  14.0  -     112    -      -      -       80  1380 0     3    250
t4                nvidia Turing          15360  320  8.1   -     65     -      130    -       40  1590 0     3    70
a10               nvidia Ampere          23028  600  31.2  62.5  125    -      250    -       72  1695 0     4    150
a10g              nvidia Ampere          23028  600  31.5  35    70     -      140    -       80  1710 0     4    300
a30               nvidia Ampere          24576  933  10.3  82    165    -      330    -       56  1440 100   4    165
a40               nvidia Ampere          46068  696  37.4  74.8  149.7  -      299.3  -       84  1740 56.25 4    300
a100-sxm4-40      nvidia Ampere          40960  1555 19.5  156   312    -      624    -       108 1410 300   4    400
a100-sxm4-80      nvidia Ampere          81920  2039 19.5  156   312    -      624    -       108 1410 300   4    400
a100-pcie-40      nvidia Ampere          40960  1555 19.5  156   312    -      624    -       108 1410 300   4    250
a100-pcie-80      nvidia Ampere          81920  1935 19.5  156   312    -      624    -       108 1410 300   4    300
l4                nvidia Ada             23034  300  30.3  60    121    242.5  242.5  -       58  2040 0     4    72
l40               nvidia Ada             46068  864  90.5  90.5  181.05 362    362    -       142 2490 0     4    300
l40s              nvidia Ada             46068  864  91.6  183   362.05 733    733    -       142 2520 0     4    350
rtx3090           nvidia Ampere          24576  936  35.6  35.6  71     -      284    -       82  2100 56.25 4    350
rtx4090           nvidia Ada             24564  1008 82.6  82.6  165.2  330.3  660.6  -       128 3105 0     4    450
rtx5090           nvidia Blackwell       32607  1792 104.8 104.8 209.5  419    838    1676    170 3090 0     5    575
rtx6000ada        nvidia Ada             49140  960  91.1  182.1 364.2  728.5  728.5  -       142 3105 0     4    300
rtxpro6000-ws     nvidia Blackwell       97887  1792 125   252   503.8  1007.6 1007.6 2015    188 3090 0     5    600
rtxpro6000-maxq   nvidia Blackwell       97887  1792 110   220   439    878    878    1755    188 -    0     5    300
rtxpro6000-server nvidia Blackwell       97887  1597 120   234   468    937    937    1875    188 -    0     5    600
h100-sxm          nvidia Hopper          81559  3350 67    494.7 989.5  1979   1979   -       132 1980 450   5    700
h100-pcie         nvidia Hopper          81559  2039 51    378   756    1513   1513   -       114 1755 300   5    350
h100-nvl          nvidia Hopper          95830  3938 60    417.5 835.5  1670.5 1670.5 -       132 1785 300   5    400
h800              nvidia Hopper          81559  3350 67    494.7 989.5  1979   1979   -       132 1980 200   5    700
h200-sxm          nvidia Hopper          143771 4800 67    494.7 989.5  1979   1979   -       132 1980 450   5    700
h200-nvl          nvidia Hopper          143771 4800 60    417.5 835.5  1670.5 1670.5 -       132 1785 450   5    600
h20               nvidia Hopper          97871  4000 44    74    148    296    296    -       78  1980 450   5    400
h20-3e            nvidia Hopper          143771 4800 44    74    148    296    296    -       78  1980 450   5    400
gh200-96          nvidia Hopper          97871  4000 67    494   990    1979   1979   -       132 1980 450   5    900
gh200-144         nvidia Hopper          146831 4900 67    494   990    1979   1979   -       132 1980 450   5    900
b100              nvidia Blackwell       196608 8000 60    900   1750   3500   3500   7000    148 -    900   5    700
b200              nvidia Blackwell       183359 7700 75    1100  2250   4500   4500   9000    148 1965 900   5    1000
gb200             nvidia Blackwell       189471 8000 80    1250  2500   5000   5000   10000   152 2062 900   5    1200
b300              nvidia Blackwell-Ultra 275040 8000 75    1125  2250   4500   188    13500   148 1920 900   6    1100
gb300             nvidia Blackwell-Ultra 284208 8000 80    1250  2500   5000   165    15000   152 -    900   6    1400
mi210             amd    CDNA2           65536  1638 22.6  -     181    -      181    -       104 1700 150   4    300
mi250x-gcd        amd    CDNA2           65536  1638 23.95 -     191.5  -      191.5  -       110 1700 200   4    560
mi300x            amd    CDNA3           196608 5300 163.4 653.7 1307.4 2614.9 2614.9 -       304 2100 448   5    750
mi325x            amd    CDNA3           262144 6000 163.4 653.7 1307.4 2614.9 2614.9 -       304 2100 448   5    1000
mi350x            amd    CDNA4           294912 8000 144.2 -     2306.9 4613.9 4613.9 9227.8  256 2200 537.5 5    1000
mi355x            amd    CDNA4           294912 8000 157.3 -     2516.6 5033.2 5033.2 10066.3 256 2400 537.5 5    1400
"""

NAMES = {
    "v100-sxm2-16": ("Tesla V100-SXM2-16GB",),
    "v100-sxm2-32": ("Tesla V100-SXM2-32GB", "Tesla V100-SXM3-32GB"),
    "v100-pcie": ("Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"),
    "t4": ("Tesla T4", "NVIDIA T4"),
    "a10": ("NVIDIA A10",),
    "a10g": ("NVIDIA A10G",),
    "a30": ("NVIDIA A30",),
    "a40": ("NVIDIA A40",),
    "a100-sxm4-40": ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
    "a100-sxm4-80": ("NVIDIA A100-SXM4-80GB",),
    "a100-pcie-40": ("NVIDIA A100-PCIE-40GB", "NVIDIA A100-PCIe-40GB", "A100-PCIE-40GB"),
    "a100-pcie-80": ("NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-80GB"),
    "l4": ("NVIDIA L4",),
    "l40": ("NVIDIA L40",),
    "l40s": ("NVIDIA L40S",),
    "rtx3090": ("NVIDIA GeForce RTX 3090",),
    "rtx4090": ("NVIDIA GeForce RTX 4090",),
    "rtx5090": ("NVIDIA GeForce RTX 5090",),
    "rtx6000ada": ("NVIDIA RTX 6000 Ada Generation",),
    "rtxpro6000-ws": ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition",),
    "rtxpro6000-maxq": ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",),
    "rtxpro6000-server": ("NVIDIA RTX PRO 6000 Blackwell Server Edition",),
    "h100-sxm": ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"),
    "h100-pcie": ("NVIDIA H100 PCIe",),
    "h100-nvl": ("NVIDIA H100 NVL",),
    "h800": ("NVIDIA H800", "NVIDIA H800 PCIe"),
    "h200-sxm": ("NVIDIA H200",),
    "h200-nvl": ("NVIDIA H200 NVL",),
    "h20": ("NVIDIA H20",),
    "h20-3e": ("NVIDIA H20-3e",),
    "gh200-96": ("NVIDIA GH200 480GB",),
    "gh200-144": ("NVIDIA GH200 144G HBM3e",),
    "b100": ("NVIDIA B100",),
    "b200": ("NVIDIA B200",),
    "gb200": ("NVIDIA GB200",),
    "b300": ("NVIDIA B300 SXM6 AC", "NVIDIA B300 SXM6 PC"),
    "gb300": ("NVIDIA GB300",),
    "mi210": ("AMD Instinct MI210",),
    "mi250x-gcd": ("AMD Instinct MI250X", "AMD Instinct MI250X / MI250", "AMD Instinct MI250"),
    "mi300x": ("AMD Instinct MI300X",),
    "mi325x": ("AMD Instinct MI325X",),
    "mi350x": ("AMD Instinct MI350X",),
    "mi355x": ("AMD Instinct MI355X",),
}
"""What NVML (or amdsmi) calls each: a device whose name has all these words is one."""

SOURCES = {
    "v100-sxm2-16": "NVIDIA V100 data sheet (SXM2)",
    "v100-sxm2-32": "NVIDIA V100 data sheet (SXM2)",
    "v100-pcie": "NVIDIA V100 data sheet (PCIe)",
    "t4": "NVIDIA T4 data sheet and Turing white paper",
    "a10": "NVIDIA A10 data sheet",
    "a10g": "NVIDIA A10G spec table as published by AWS partners (cloud-only part)",
    "a30": "NVIDIA A30 data sheet",
    "a40": "NVIDIA A40 data sheet",
    "a100-sxm4-40": "NVIDIA A100 data sheet",
    "a100-sxm4-80": "NVIDIA A100 80GB data sheet",
    "a100-pcie-40": "NVIDIA A100 data sheet (PCIe)",
    "a100-pcie-80": "NVIDIA A100 80GB data sheet (PCIe)",
    "l4": "NVIDIA L4 data sheet (halved from 'with sparsity')",
    "l40": "NVIDIA L40 data sheet",
    "l40s": "NVIDIA L40S data sheet",
    "rtx3090": "NVIDIA GA102 white paper",
    "rtx4090": "NVIDIA Ada GPU architecture white paper",
    "rtx5090": "NVIDIA RTX Blackwell GPU architecture white paper; DCGM issue 234 for profiling",
    "rtx6000ada": "NVIDIA RTX 6000 Ada data sheet and Ada PRO white paper",
    "rtxpro6000-ws": "NVIDIA RTX PRO 6000 Blackwell data sheet (125 TF FP32; 4000 AI TOPS FP4 sparse); tensor rates from RTX Blackwell PRO white paper",
    "rtxpro6000-maxq": "NVIDIA RTX PRO 6000 Blackwell Max-Q data sheet (3511 AI TOPS)",
    "rtxpro6000-server": "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet (Dec 2025: 96 GB, 1597 GB/s, 120 TF FP32, up to 600 W)",
    "h100-sxm": "NVIDIA H100 data sheet (SXM)",
    "h100-pcie": "NVIDIA H100 data sheet (PCIe)",
    "h100-nvl": "NVIDIA H100 data sheet (NVL, per GPU)",
    "h800": "vendor tables (NVLink cut H100)",
    "h200-sxm": "NVIDIA H200 data sheet (SXM); name and MiB seen on a real machine (driver 580)",
    "h200-nvl": "NVIDIA H200 data sheet (NVL)",
    "h20": "press reproductions of NVIDIA H20 brief (no public data sheet)",
    "h20-3e": "name seen in vLLM fused_moe config files; figures by analogy",
    "gh200-96": "NVIDIA GH200 data sheet",
    "gh200-144": "NVIDIA GH200 data sheet; name and MiB seen in public host snapshots",
    "b100": "NVIDIA Blackwell architecture technical brief",
    "b200": "NVIDIA Blackwell data sheet, HGX B200 column (sparse figures halved)",
    "gb200": "NVIDIA GB200 NVL72 data sheet (per GPU); SM count from public run logs",
    "b300": "NVIDIA HGX B300 data sheet; name from many public logs",
    "gb300": "NVIDIA GB300 NVL72 data sheet divided by 72",
    "mi210": "AMD Instinct MI210 data sheet",
    "mi250x-gcd": "AMD Instinct MI250X data sheet divided by 2",
    "mi300x": "AMD Instinct MI300X data sheet",
    "mi325x": "AMD Instinct MI325X data sheet",
    "mi350x": "AMD Instinct MI350X data sheet",
    "mi355x": "AMD Instinct MI355X data sheet",
}
"""Where each row's figures come from."""

UNCERTAIN = {
    "rtxpro6000-ws": ("fp16", "fp8", "int8", "fp4"),
    "rtxpro6000-maxq": ("fp16", "fp8", "int8", "fp4"),
    "rtxpro6000-server": ("fp16", "fp8", "int8", "fp4"),
    "h20-3e": ("bandwidth", "tdp"),
    "gh200-96": ("tdp",),
    "gh200-144": ("tdp",),
    "b300": ("int8", "fp4"),
    "gb300": ("int8",),
    "mi250x-gcd": ("link",),
}
"""Figures that are scaled, disputed or seen in one place only."""

NOTES = {
    "v100-sxm2-16": "FP16 tensor only (no BF16, no INT8 tensor)",
    "v100-sxm2-32": "SXM3 variant 350 W and slightly higher clocks; no BF16",
    "v100-pcie": "16 GB variant exists; V100S-PCIE-32GB is 1134 GB/s and 130 TF",
    "t4": "data sheet rounds bandwidth to 300; no BF16; power limited: sustained clocks far below 1590",
    "a10": "also INT4 500",
    "a10g": "uncertain: half-rate tensor like GeForce (FP32 accumulate); some tables print 125 TF for A10G, which is A10",
    "a30": "MIG up to 4",
    "a40": "NVLink bridge only in pairs",
    "a100-pcie-40": "power limited; NVLink via bridge pairs only",
    "a100-pcie-80": "NVML prints 'NVIDIA A100 80GB PCIe'; the hyphen form is in mock libraries only",
    "l4": "72 W cap: sustained SM clock typically far below 2040, so the data sheet peak is rarely reachable",
    "l40": "half-rate tensor versus L40S",
    "rtx3090": "FP16 with FP16 accumulate 142",
    "rtx4090": "FP16 accumulate doubles FP16 (330.3) and FP8 (660.6)",
    "rtx5090": "FP16 accumulate doubles FP16/FP8; FP4 = 3352 AI TOPS / 2",
    "rtx6000ada": "data sheet prints 1457 (FP8 sparse)",
    "rtxpro6000-ws": "per-dtype tensor numbers uncertain; max clock and MiB seen in a public host snapshot",
    "rtxpro6000-maxq": "uncertain",
    "rtxpro6000-server": "tensor rates scaled from 120/126, not published per dtype; memory clock is lower than the workstation card; MIG up to 4",
    "h100-sxm": "spec peak assumes ~1830 MHz; NVML max SM clock is 1980",
    "h100-pcie": "data sheet rounds to 2 TB/s; bridge pairs only",
    "h100-nvl": "data sheet rounds to 3.9 TB/s; older sheet quotes the PAIR (188 GB, 7.8 TB/s): halve it",
    "h800": "uncertain; NVLink 400 GB/s",
    "h200-nvl": "2- or 4-way bridge",
    "h20": "ridge point only 37 FLOP/byte; some boards 500 W",
    "h20-3e": "uncertain",
    "gh200-96": "'480GB' in the name is the CPU LPDDR5X; TDP is per MODULE, 450-1000 W; C2C 900 GB/s bidir",
    "gh200-144": "TDP per module",
    "b100": "rarely shipped; uncertain except brief figures",
    "b200": "early briefs print 192 GB, 8 TB/s, 80 TF FP32; cloud pages still say 8.0; the 2.2 PF sparse TF32 gives 1100",
    "gb200": "TDP configurable; module power scope includes Grace; C2C instead of PCIe to host",
    "b300": "FP4 dense printed as 13.1, 13.5, 14 or 15 PF in different documents; INT8 cut to ~1/24 of B200; usable 275040 MiB; one public dump shows a 7680-bit bus, which would give 7672 GB/s",
    "gb300": "FP4 dense 1080 PF/72; workstation GB300 exposes 256703 MiB; SM count from public logs",
    "mi210": "SM=CU; FP32 matrix 45.3; links = Infinity Fabric",
    "mi250x-gcd": "amdsmi and HIP see each GCD as ONE GPU: this row is per GCD; package is 128 GB, 3277 GB/s, 383 TF; power is reported on the primary GCD only",
    "mi300x": "achievable GEMM is well below peak; partition modes CPX/DPX change visible device count",
    "mi350x": "TF32 dropped in CDNA4; FP6 equals FP4 rate",
}
"""What to know before relying on a row."""
