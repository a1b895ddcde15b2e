"""Reads a block or a transaction from a mirror in layout archive, on any host:

    python3 read_archive.py https://example.org/mirror block 840000
    python3 read_archive.py https://example.org/mirror transaction 3fa0...
"""
import gzip, hashlib, json, sys, urllib.request

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

def find(transaction):  # yields height, first and count of every entry whose key is the end of this id
    key = transaction[-12:]
    for file in (file for level in root['ids'] for file in level['files']):
        bounds = [bound for bound, _ in file['members']] + ['~']
        for i, (_, length) in enumerate(file['members']):
            if bounds[i] <= key + '!' and key < bounds[i + 1]:  # the member may have keys that begin with `key`
                start = sum(size for _, size in file['members'][:i])
                lines = gzip.decompress(get(f"archive/{file['file']}.bin", start, length)).decode().splitlines()
                for entry in (entry for line in lines if line.startswith(key) for entry in line.split('\t')[1:]):
                    if '.' in entry: yield tuple(int(number) for number in entry.split('.'))

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
    runs = [records(*entry) for entry in find(wanted) if entry[2] > 0]
    print(json.dumps([r for run in runs for r in run if r['location']['tx_id'].endswith(wanted[-64:])], ensure_ascii=False))
