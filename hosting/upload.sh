#!/bin/sh
# Uploads a build to object storage with rclone. Clients get correct answers, old or new, during the upload.
#
#     hosting/upload.sh REMOTE [DIST] [CACHE]        for example: hosting/upload.sh r2:my-bucket dist .cache
#
# You may stop it at any time and run it again, and you may skip builds. CACHE/uploaded records the size and time of
# every file in the bucket, and only files that differ from this record are sent. While an upload runs, its files are
# marked in the record as doubtful. Without a record, after very many changes, or with UPLOAD=all, the build is compared
# with the bucket itself.
set -eu
export LC_ALL=C

die() {
  echo "upload: $1" >&2
  exit 1
}

[ $# -ge 1 ] && [ $# -le 3 ] || die 'usage: hosting/upload.sh REMOTE [DIST] [CACHE]'
remote=$1 dist=${2:-dist} cache=${3:-.cache}
case $remote in *:* | */*) ;; *) die "REMOTE is an rclone remote and a bucket, as in r2:my-bucket, not \"$remote\"" ;; esac
case $remote in *: | */) root=$remote ;; *) root=$remote/ ;; esac
manifest=runes/v1/manifest.json archive=archive
command -v rclone >/dev/null || die 'rclone is not installed; see https://rclone.org/install/'
[ -f "$dist/$manifest" ] || die "build not found in $dist: $manifest is missing. Run npm run build first."
[ -f "$dist/.rune-activity-mirror" ] || die "$dist is not the output folder of a build: .rune-activity-mirror is missing"
# The marker of a finished build is one line. A second line says that a build is running or did not finish.
is_finished() { [ "$(wc -l <"$dist/.rune-activity-mirror")" -eq 1 ]; }
is_finished || die "a build is using $dist, or was killed there. Build again first."

# Files are small, so many transfers in parallel hide the latency. A token for one bucket may not check that the bucket
# exists.
export RCLONE_TRANSFERS="${RCLONE_TRANSFERS:-32}" RCLONE_CHECKERS="${RCLONE_CHECKERS:-32}"
export RCLONE_S3_NO_CHECK_BUCKET=true
must() { rclone "$@" || die 'rclone failed, see above. Run this again to continue.'; }
send() { must "$@" --checksum --header-upload 'Cache-Control: public, no-cache, must-revalidate'; }
# Files of layout archive never change.
send_archive() { must "$@" --checksum --header-upload 'Cache-Control: public, max-age=31536000, immutable, no-transform'; }

state=$cache/uploaded
record=$state/$(printf %s "$remote" | cksum | tr ' ' -)
work=$record.work
mkdir -p "$work"
exec 9>"$record.lock"
# The kernel releases the lock with the last process that has it, even an rclone that outlives this script.
if command -v flock >/dev/null && ! flock -n 9; then die "another upload to $remote is running"; fi

# Lists the files of a folder of the remote. A disk or SFTP may lack the folder, and a bucket has none.
list_remote() {
  status=0
  rclone lsf --fast-list "$@" 2>"$work/errors" || status=$?
  case $status in 0 | 3) ;; *) die "$remote cannot be read: $(cat "$work/errors")" ;; esac
}

# Lists every file of the build in $1: path, tab, size and time. Fails on an incomplete list, which would delete files
# from the bucket.
list_files() {
  (
    cd "$dist" || exit
    if find . -prune -printf '' 2>/dev/null; then
      find . -type f ! -name '.rune-activity-mirror*' -printf '%P\t%s %T@\n'
    else
      find . -type f ! -name '.rune-activity-mirror*' -exec stat -f '%N%t%z %Fm' {} +
    fi
  ) >"$work/found" || die "the files in $dist cannot be listed, see above. Fix the cause and run this again."
  [ -s "$work/found" ] || die "no files found in $dist"
  sed 's|^\./||' "$work/found" >"$work/list"
  sort "$work/list" >"$1"
}
paths() { cut -f 1 "$1" | sort -u; }

list_files "$work/now"
: >"$work/superseded"

# A host that still uses the old manifest would report ids as unknown if their paths changed. So these manifest fields
# must not change.
shape() { sed -n '/"layout"/,/"operation_pages"/p'; }
status=0
rclone cat "$root$manifest" >"$work/manifest" 2>"$work/errors" || status=$?
case $status in 0 | 3 | 4) ;; *) die "$remote cannot be read: $(cat "$work/errors")" ;; esac
if [ -s "$work/manifest" ] && [ "$(shape <"$work/manifest")" != "$(shape <"$dist/$manifest")" ]; then
  die "$remote has a build with another layout, dialect, page sizes or pages by operation. Upload to another folder or bucket, then point the host there."
fi

# Every upload first writes a random number to the bucket. If the record does not have that number, it misses an upload,
# even one that failed before its manifest. This happens when an old copy of the cache folder is restored.
number=.rune-activity-mirror.upload
status=0
rclone cat "$root$number" >"$work/number" 2>"$work/errors" || status=$?
case $status in 0 | 3 | 4) ;; *) die "$remote cannot be read: $(cat "$work/errors")" ;; esac

# Ignores the record if another machine has uploaded to the bucket or emptied it.
if [ "${UPLOAD:-}" = all ] || ! grep -qsx "$(cksum <"$work/manifest")" "$record.manifests" ||
  ! grep -qsx "$(cat "$work/number")" "$record.numbers"; then rm -f "$record"; fi
if [ -f "$record" ]; then
  comm -13 "$record" "$work/now" >"$work/differing"
  paths "$work/differing" >"$work/changed"
  paths "$record" >"$work/before"
  paths "$work/now" >"$work/after"
  comm -23 "$work/before" "$work/after" >"$work/gone"
  # With many changes, listing the bucket is cheaper than a request for each file.
  if [ "$(cat "$work/changed" "$work/gone" | wc -l)" -gt "${UPLOAD_FEW:-5000}" ]; then rm -f "$record"; fi
fi

take_number() {
  od -An -N16 -tx8 /dev/urandom | tr -d ' \n' >"$work/number"
  { cat "$work/number" && echo; } >>"$record.numbers"
  rclone copyto "$work/number" "$root$number" ||
    die "$remote cannot be written, see above. Create the bucket if it does not exist, check that rclone may write to it, and run this again."
}

if [ -f "$record" ] && cmp -s "$record" "$work/now"; then
  summary='0 files sent, 0 removed'
elif [ -f "$record" ]; then
  {
    comm -12 "$record" "$work/now"
    awk '{ print $0 "\t?" }' "$work/changed" "$work/gone"
  } | sort >"$work/doubtful"
  mv "$work/doubtful" "$record"
  cksum <"$dist/$manifest" >>"$record.manifests"
  take_number
  grep "^$archive/" "$work/changed" >"$work/archived" || true
  grep '^runes/v1/blocks/' "$work/changed" >"$work/pages" || true
  grep -v -e "^$archive/" -e '^runes/v1/blocks/' -e "^$manifest\$" "$work/changed" >"$work/others" || true
  grep "^$manifest\$" "$work/changed" >"$work/last" || true
  # Pages first, then the files that refer to them, then the manifest.
  if [ -s "$work/archived" ]; then send_archive copy "$dist" "$remote" --no-traverse --files-from-raw "$work/archived"; fi
  for list in pages others last; do
    if [ -s "$work/$list" ]; then send copy "$dist" "$remote" --no-traverse --files-from-raw "$work/$list"; fi
  done
  grep "^$archive/" "$work/gone" >"$work/superseded" || true
  grep -v "^$archive/" "$work/gone" >"$work/removed" || true
  if [ -s "$work/removed" ]; then must delete "$remote" --files-from-raw "$work/removed"; fi
  summary="$(wc -l <"$work/changed" | tr -d ' ') files sent, $(wc -l <"$work/removed" | tr -d ' ') removed"
else
  take_number
  if [ -d "$dist/$archive" ]; then send_archive copy --fast-list "$dist/$archive" "$root$archive"; fi
  if [ -d "$dist/runes/v1/blocks" ]; then send copy --fast-list "$dist/runes/v1/blocks" "${root}runes/v1/blocks"; fi
  send copy --fast-list "$dist" "$remote" --exclude '/runes/v1/blocks/**' --exclude "/$archive/**" --exclude "/$manifest" --exclude '/.rune-activity-mirror*'
  send copyto "$dist/$manifest" "$root$manifest"
  # Only deletes, because the content was compared above. Outside runes/v1/, only old files of rows are deleted.
  must sync --fast-list "$dist/runes/v1" "${root}runes/v1" --size-only --delete-excluded
  list_remote "$root$archive" >"$work/archived"
  while IFS= read -r file; do
    [ -f "$dist/$archive/$file" ] || echo "$archive/$file" >>"$work/superseded"
  done <"$work/archived"
  : >"$work/gone"
  list_remote "${root}rows" --include '/*-*.parquet' --include '/index-*.json' >"$work/bulk"
  while IFS= read -r file; do
    [ -f "$dist/rows/$file" ] || echo "rows/$file" >>"$work/gone"
  done <"$work/bulk"
  if [ -s "$work/gone" ]; then must delete "$remote" --files-from-raw "$work/gone"; fi
  summary='compared with the bucket'
fi

# Readers that still have the old manifest need the files that it names. So files of layout archive stay for a day after
# a build has no use for them. $record.later has the time since when each waits.
grace=${UPLOAD_GRACE_SECONDS:-86400} time=$(date +%s)
[ -f "$record.later" ] || : >"$record.later"
awk -F '\t' -v time="$time" -v OFS='\t' '
  FILENAME == ARGV[1] { present[$1]; next }
  { path = FILENAME == ARGV[2] ? $2 : $1 }
  path == "" || path in present || path in seen { next }
  { seen[path]; print (FILENAME == ARGV[2] ? $1 : time), path }' "$work/now" "$record.later" "$work/superseded" >"$work/later"
mv "$work/later" "$record.later"
awk -F '\t' -v due="$((time - grace))" '$1 <= due { print $2 }' "$record.later" >"$work/due"
if [ -s "$work/due" ]; then
  must delete "$remote" --files-from-raw "$work/due"
  awk -F '\t' -v OFS='\t' -v due="$((time - grace))" '$1 > due' "$record.later" >"$work/later"
  mv "$work/later" "$record.later"
fi

list_files "$work/then"
if ! cmp -s "$work/now" "$work/then" || ! is_finished; then
  die "$dist was changed during the upload. Run this again."
fi
cksum <"$dist/$manifest" >"$record.manifests"
{ cat "$work/number" && echo; } >"$record.numbers"
mv "$work/now" "$record"
rm -rf "$work"
echo "upload: $remote now matches $dist ($(wc -l <"$record" | tr -d ' ') files; $summary)"
