#!/bin/sh
# Uploads a build to object storage with rclone. Clients get correct answers, old or new, during the upload.
#
#     hosting/upload.sh [--replace] REMOTE [DIST] [CACHE]        for example: hosting/upload.sh r2:my-bucket dist .cache
#
# --replace  Replaces another mirror in the bucket. Until the upload has ended, answers may be of either mirror.
#
# Exit codes: 1 usage, 2 a build or a bucket that does not fit, 3 the upload failed.
# It compares the build with a listing of the bucket. You may stop it at any time and run it again, skip builds, and
# upload from several machines, one after the other.
set -eu
export LC_ALL=C

die() {
  echo "upload: $2" >&2
  exit "$1"
}

replace=
if [ "${1:-}" = --replace ]; then replace=1 && shift; fi
[ $# -ge 1 ] && [ $# -le 3 ] || die 1 'usage: hosting/upload.sh [--replace] REMOTE [DIST] [CACHE]'
remote=$1 dist=${2:-dist} cache=${3:-.cache}
case $remote in *:* | */*) ;; *) die 1 "REMOTE is an rclone remote and a bucket, as in r2:my-bucket, not \"$remote\"" ;; esac
case $remote in *: | */) root=$remote ;; *) root=$remote/ ;; esac
manifest=runes/v1/manifest.json
command -v rclone >/dev/null || die 3 'rclone is not installed; see https://rclone.org/install/'
[ -f "$dist/$manifest" ] || die 2 "build not found in $dist: $manifest is missing. Run npm run build first."
[ -f "$dist/.rune-activity-mirror" ] || die 2 "$dist is not the output folder of a build: .rune-activity-mirror is missing"
# The marker of a finished build is one line. A second line says that a build is running or did not finish.
is_finished() { [ "$(wc -l <"$dist/.rune-activity-mirror")" -eq 1 ]; }
is_finished || die 3 "a build is using $dist, or was killed there. Build again first."
uploaded=$(cksum <"$dist/$manifest")
check_same() { [ "$(cksum <"$dist/$manifest")" = "$uploaded" ] && is_finished || die 3 "$dist was changed during the upload. Run this again."; }

# Files are small, so many transfers in parallel hide the latency. A token for one bucket may not check that the bucket
# exists.
export RCLONE_TRANSFERS="${RCLONE_TRANSFERS:-32}" RCLONE_CHECKERS="${RCLONE_CHECKERS:-32}" RCLONE_FAST_LIST=true
export RCLONE_S3_NO_CHECK_BUCKET=true
# By its defaults, rclone would try a bucket that does not answer for hours without a word.
export RCLONE_RETRIES="${RCLONE_RETRIES:-1}" RCLONE_LOW_LEVEL_RETRIES="${RCLONE_LOW_LEVEL_RETRIES:-2}"
export RCLONE_CONTIMEOUT="${RCLONE_CONTIMEOUT:-5s}" RCLONE_TIMEOUT="${RCLONE_TIMEOUT:-20s}"
# Prints what rclone said, without times and levels: the first lines that differ in more than a path, and the number of
# the others. Variables may replace its configuration.
said() {
  awk '/NOTICE: Config file .* not found/ { next }
    { sub(/^[0-9\/]+ [0-9:]+ +([A-Z]+ *: *)?/, ""); sub(/^\t/, ""); kind = $0; sub(/^[^:]*: /, "", kind) }
    seen[kind]++ || shown == 5 { more++; next } { shown++; print } END { if (more) print "(rclone: " more " more lines)" }' "$state/errors"
}
must() {
  rclone "$@" 2>"$state/errors" && said >&2 && return
  check_same
  said >&2
  die 3 'rclone failed, see above. Check that the bucket exists and that rclone may write to it, and run this again.'
}
send() { must "$@" --header-upload 'Cache-Control: public, no-cache, must-revalidate'; }

state=$cache/uploads/$(printf %s "$remote" | cksum | tr ' ' -)
mkdir -p "$state"
exec 9>"$state/lock"
# The kernel releases the lock with the last process that has it, even an rclone that outlives this script.
if command -v flock >/dev/null && ! flock -n 9; then die 3 "another upload to $remote is running"; fi

# Downloads a file of the bucket, or makes an empty one if the bucket lacks it. rclone sends each of two requests six times,
# so a bucket that does not answer at all is given up after a minute.
fetch() {
  status=0
  rclone cat "$root$1" --timeout 5s >"$2" 2>"$state/errors" || status=$?
  case $status in 0 | 3 | 4) ;; *) die 3 "$remote cannot be read: $(said)" ;; esac
}
another() { die 2 "$remote has another mirror: $1. Upload to another folder or bucket, then point the host there. --replace replaces it."; }

# A host that still uses the old manifest would report ids as unknown if their paths changed, and another mirror has other
# blocks. So these manifest fields must not change.
shape() { sed -n -e '/^  "\(sample\|network\)"/p' -e '/^  "layout"/,/^  "operation_pages"/p'; }
fetch "$manifest" "$state/manifest"
if [ -z "$replace" ] && [ -s "$state/manifest" ] && [ "$(shape <"$state/manifest")" != "$(shape <"$dist/$manifest")" ]; then
  another 'its network, layout, dialect, page sizes or pages by operation differ, or one of both is the sample'
fi

# The first block that both have is settled, unless they have very few blocks, so a reorganisation does not replace it.
first() { sed -n '/^  "heights"/,/^  ]/s/^ *\([0-9][0-9]*\),$/\1/p' "$1" | head -n 1; }
common=$( (first "$state/manifest" && first "$dist/$manifest") | sort -n | tail -n 1)
digests=runes/v1/digests/$((common - common % 1000)).json
if [ -z "$replace" ] && [ -s "$state/manifest" ] && [ -f "$dist/$digests" ]; then
  fetch "$digests" "$state/digests"
  block=$(awk -F '[:,]' '!/"height"/ { next } NR == FNR { hash[$2] = $4; next }
    $2 in hash { if (hash[$2] != $4) print $2; exit }' "$state/digests" "$dist/$digests")
  [ -z "$block" ] || another "its block $block has another hash than that of $dist"
fi

lists() { sed -n '/^  "lists"/,/^  }/s/^    "\([a-z_]*\)".*/\1/p' "$1" | sort; }
lists "$state/manifest" >"$state/old"
lists "$dist/$manifest" >"$state/lists"
lost=$(comm -23 "$state/old" "$state/lists" | tr '\n' ' ')
if [ -z "$replace" ] && [ -n "$lost" ]; then
  die 2 "$remote has lists that $dist lacks: ${lost}Build them from all blocks, or upload to another folder or bucket. --replace removes them."
fi

# First files that are named by their content, which never change, then pages, then the files that refer to them, then
# the manifest.
if [ -d "$dist/archive" ]; then
  must copy "$dist/archive" "${root}archive" --size-only --header-upload 'Cache-Control: public, max-age=31536000, immutable, no-transform'
fi
if [ -d "$dist/rows" ]; then send copy "$dist/rows" "${root}rows" --size-only; fi
if [ -d "$dist/runes/v1/blocks" ]; then send copy "$dist/runes/v1/blocks" "${root}runes/v1/blocks" --checksum; fi
send copy "$dist" "$remote" --checksum --exclude '/archive/**' --exclude '/rows/**' --exclude '/runes/v1/blocks/**' \
  --exclude "/$manifest" --exclude '/.rune-activity-mirror*'
check_same
send copyto "$dist/$manifest" "$root$manifest" --checksum
# Only deletes: a build that ends meanwhile must not send its manifest before the files that it names.
must sync "$dist/runes/v1" "${root}runes/v1" --ignore-existing --delete-excluded

# Readers that still have the last manifest need the files that it names. So a file that is named by its content is
# deleted by the second upload that has no use for it.
(cd "$dist" && find . -type f) >"$state/found" || die 3 "the files in $dist cannot be listed, see above. Fix the cause and run this again."
sed 's|^\./||' "$state/found" | sort >"$state/here"
must lsf "$remote" --recursive --files-only --include '/archive/**' --include '/rows/*-*.parquet' --include '/rows/index-*.json' >"$state/there"
sort "$state/there" | comm -13 "$state/here" - >"$state/new"
touch "$state/unused"
comm -12 "$state/unused" "$state/new" >"$state/gone"
if [ -s "$state/gone" ]; then must delete "$remote" --files-from-raw "$state/gone"; fi
mv "$state/new" "$state/unused"
check_same
echo "upload: $remote now matches $dist ($(wc -l <"$state/here" | tr -d ' ') files; $(wc -l <"$state/gone" | tr -d ' ') removed)"
