"""Reads a block or a transaction from a mirror in layout archive, on any host:

    python3 read_archive.py https://example.org/mirror block 840000
    python3 read_archive.py https://example.org/mirror transaction 3fa0...
"""
import gzip, hashlib, json, sys, urllib.request, zlib

base, kind, wanted = sys.argv[1].rstrip('/'), sys.argv[2], sys.argv[3]

def get(path, start=0, length=None):
    headers = {} if length is None else {'Range': f'bytes={start}-{start + length - 1}'}
    with urllib.request.urlopen(urllib.request.Request(f'{base}/{path}', headers=headers)) as answer:
        body = answer.read()
        return body if length is None or answer.status == 206 else body[start:start + length]

def content(name):  # of a whole file, whose name is the SHA-256 of the digests at its end
    file = get(f'archive/{name}.bin')
    size = len(file) - -(-len(file) // (16384 + 32)) * 32
    digests = b''.join(hashlib.sha256(file[at:min(at + 16384, size)]).digest() for at in range(0, size, 16384))
    assert file[size:] == digests and hashlib.sha256(digests).hexdigest() == name, f'{name} is damaged'
    return file[:size]

manifest = json.loads(get('runes/v1/manifest.json'))
assert manifest['format'] == 4, f"format {manifest['format']} is not known"
root = json.loads(gzip.decompress(content(manifest['archive']['root'])))

def entries(level, index):  # of block `index` of a level: (key, height, first, count)
    in_file = root['object_size'] // 4096
    data = get(f"archive/{level['files'][index // in_file]}.bin", index % in_file * 4096, 4096)
    assert zlib.crc32(data[:4092]) == int.from_bytes(data[4092:], 'big'), 'a table is damaged'
    cut = lambda at, start, end: int.from_bytes(data[at + start:at + end], 'big')
    return [(cut(at, 0, 6), cut(at, 6, 9), cut(at, 9, 13), cut(at, 13, 16)) for at in range(0, 4080, 16)]

def find(transaction):  # yields height, first and count of every entry whose key is the end of this id
    key = int(transaction[-12:], 16)
    for level in root['ids']:
        blocks = -(-sum(level['counts']) // 255)
        low, high = 0, blocks
        while low < high:  # ends at the first block whose last key is not below the key
            middle = (low + high) // 2
            low, high = (middle + 1, high) if entries(level, middle)[-1][0] < key else (low, middle)
        for index in range(low, min(low + 2, blocks)):
            yield from (e[1:] for e in entries(level, index) if e[0] == key and e[1] < 0xffffff and e[3] > 0)

def records(height, first=0, count=None):  # of a block
    found = []
    for segment in (s for s in root['segments'] if s['first'] <= height <= s['last']):
        data = content(segment['file'])
        offset = 0
        for line in gzip.decompress(data[segment['bytes'] - segment['directory']:]).splitlines():
            block = json.loads(line)
            for length in block['pages']:
                if block['height'] == height: found += json.loads(gzip.decompress(data[offset:offset + length]))['results']
                offset += length
    return found[first:] if count is None else found[first:first + count]

if kind == 'block': print(json.dumps(records(int(wanted)), ensure_ascii=False))
else:
    runs = [records(*entry) for entry in find(wanted)]
    print(json.dumps([r for run in runs for r in run if r['location']['tx_id'].endswith(wanted[-64:])], ensure_ascii=False))
