/* The kernels of a cubin and their parameters, read from the ELF sections that ptxas writes. */
#include "stub.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Attributes of .nv.info and .nv.info.<kernel>: a format byte, an attribute byte, and a value or a length. */
enum { ATTR_MAX_THREADS = 0x05, ATTR_REQUIRED_THREADS = 0x10, ATTR_PARAMETER = 0x17, ATTR_PARAMETER_BYTES = 0x19, ATTR_REGISTERS = 0x2f };
enum { FORMAT_HALF = 3, FORMAT_BYTES = 4 };

static uint32_t word(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t half(const unsigned char *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Calls `each` with every attribute of a section. */
static void attributes(const unsigned char *at, size_t size, void (*each)(void *, int, const unsigned char *, uint16_t), void *with) {
    const unsigned char *end = at + size;
    while (at + 4 <= end) {
        int format = at[0], attribute = at[1];
        uint16_t value = half(at + 2);
        at += 4;
        each(with, attribute, format == FORMAT_BYTES ? at : NULL, value);
        if (format == FORMAT_BYTES) at += value;
    }
}

static void of_kernel(void *with, int attribute, const unsigned char *bytes, uint16_t value) {
    Kernel *kernel = with;
    if (attribute == ATTR_PARAMETER && bytes && half(bytes + 4) < MOST_PARAMETERS) {
        int ordinal = half(bytes + 4);
        uint32_t packed = word(bytes + 8);
        /* Bits 18 on: size. Bits 8 to 11: the address space that a pointer points to, 0 for a plain value. */
        kernel->parameters[ordinal] = (Parameter){half(bytes + 6), (uint16_t)(packed >> 18), (packed >> 8 & 15) != 0};
        if (ordinal >= kernel->count) kernel->count = ordinal + 1;
    } else if (attribute == ATTR_PARAMETER_BYTES && !bytes) {
        kernel->parameter_bytes = value;
    } else if ((attribute == ATTR_MAX_THREADS || attribute == ATTR_REQUIRED_THREADS) && bytes) {
        kernel->most_threads = word(bytes) * word(bytes + 4) * word(bytes + 8);
        if (attribute == ATTR_REQUIRED_THREADS)
            for (int i = 0; i < 3; i++) kernel->required[i] = word(bytes + 4 * i);
    }
}

typedef struct {
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    Kernel *kernels;
    int count;
} Registers;

static void of_module(void *with, int attribute, const unsigned char *bytes, uint16_t value) {
    Registers *it = with;
    (void)value;
    if (attribute != ATTR_REGISTERS || !bytes || word(bytes) >= it->symbol_count) return;
    const char *name = it->names + it->symbols[word(bytes)].st_name;
    for (int i = 0; i < it->count; i++)
        if (!strcmp(it->kernels[i].name, name)) it->kernels[i].registers = word(bytes + 4);
}

/* A cubin runs on its own major version from its own minor on; one compiled for exactly one architecture ("90a") is not told apart. */
static bool runs_here(const Elf64_Ehdr *elf) {
    int made = elf->e_ident[EI_ABIVERSION] >= 8 ? elf->e_flags >> 8 & 0xff : elf->e_flags & 0xff;
    return made / 10 == stub_capability / 10 && made % 10 <= stub_capability % 10;
}

Kernel *read_cubin(const unsigned char *image, int *count, CUresult *status) {
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)image;
    *status = CUDA_ERROR_INVALID_IMAGE;
    if (!image || memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_machine != 190) return NULL;  /* 190: EM_CUDA; PTX is not compiled here */
    *status = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (!runs_here(elf)) return NULL;
    *status = CUDA_ERROR_OUT_OF_MEMORY;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + elf->e_shoff);
    const char *names = (const char *)image + sections[elf->e_shstrndx].sh_offset;
    Kernel *kernels = calloc((size_t)elf->e_shnum + 1, sizeof *kernels);
    if (!kernels) return NULL;
    *count = 0;
    for (int i = 0; i < elf->e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        if (strncmp(name, ".text.", 6)) continue;
        Kernel *kernel = &kernels[(*count)++];
        snprintf(kernel->name, sizeof kernel->name, "%s", name + 6);
        kernel->most_threads = 1024;
        for (int j = 0; j < elf->e_shnum; j++) {
            const char *other = names + sections[j].sh_name;
            if (!strncmp(other, ".nv.info.", 9) && !strcmp(other + 9, name + 6))
                attributes(image + sections[j].sh_offset, sections[j].sh_size, of_kernel, kernel);
            if (!strncmp(other, ".nv.shared.", 11) && !strcmp(other + 11, name + 6)) kernel->static_shared = (uint32_t)sections[j].sh_size;
        }
    }
    Registers registers = {.kernels = kernels, .count = *count};
    for (int i = 0; i < elf->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB) {
            registers.symbols = (const Elf64_Sym *)(image + sections[i].sh_offset);
            registers.symbol_count = sections[i].sh_size / sizeof *registers.symbols;
            registers.names = (const char *)image + sections[sections[i].sh_link].sh_offset;
        }
    for (int i = 0; i < elf->e_shnum; i++)
        if (!strcmp(names + sections[i].sh_name, ".nv.info"))
            attributes(image + sections[i].sh_offset, sections[i].sh_size, of_module, &registers);
    *status = CUDA_SUCCESS;
    return kernels;
}
