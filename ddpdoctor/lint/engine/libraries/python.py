"""Python's own library, and NumPy. Source: their documentation."""

EFFECTS = """
time.time                               local cause=clock
time.time_ns                            local cause=clock
time.monotonic                          local cause=clock
time.monotonic_ns                       local cause=clock
time.perf_counter                       local cause=clock
time.perf_counter_ns                    local cause=clock
time.process_time                       local cause=clock
time.strftime                           local cause=clock
time.localtime                          local cause=clock
time.ctime                              local cause=clock
time.asctime                            local cause=clock
time.gmtime                             local cause=clock
time.sleep                              event kind=sleep
time.*                                  unknown
timeit.default_timer                    local cause=clock
datetime.datetime.now                   local cause=clock
datetime.datetime.utcnow                local cause=clock
datetime.datetime.today                 local cause=clock
datetime.*                              pure
enum.auto                               distinct
uuid.uuid1                              local cause=chance
uuid.uuid4                              local cause=chance
secrets.*                               local cause=chance
os.urandom                              local cause=chance
os.getpid                               local cause=machine
os.getppid                              same
os.uname                                local cause=machine
socket.gethostname                      local cause=machine
socket.socket                           new type=socket.socket
socket.socket.getsockname               local cause=machine
socket.create_server                    new type=socket.socket
threading.Lock                          new type=threading.Lock
threading.RLock                         new type=threading.RLock
platform.node                           local cause=machine
psutil.*                                local cause=machine
shutil.disk_usage                       local cause=machine
tempfile.mkdtemp                        local cause=chance
tempfile.mkstemp                        local cause=chance
tempfile.gettempdir                     same
tempfile.TemporaryDirectory             local cause=chance
tempfile.NamedTemporaryFile             local cause=chance
id                                      local cause=machine
hash                                    salted
random.seed                             event kind=seed_python seed=a@0
random.setstate                         event kind=set_rng_python state=state@0
random.Random                           new type=random.Random seed=x@0
random.SystemRandom                     new type=random.SystemRandom
random.SystemRandom.*                   local cause=chance
random.getstate                         event kind=get_rng_state result=chance_python
random.*                                event kind=draw_python result=chance_python
numpy.random.seed                       event kind=seed_numpy seed=seed@0
numpy.random.set_state                  event kind=set_rng_numpy state=state@0
numpy.random.default_rng                new type=numpy.random.Generator seed=seed@0
numpy.random.RandomState                new type=numpy.random.RandomState seed=seed@0
numpy.random.get_state                  event kind=get_rng_state result=chance_numpy
numpy.random.*                          event kind=draw_numpy result=chance_numpy
random.Random.*                         event kind=draw_own result=pure
random.Random.seed                      event kind=seed_generator seed=a@0 result=itself
random.Random.setstate                  event kind=seed_generator seed=state@0 result=itself
numpy.random.RandomState.*              event kind=draw_own result=pure
numpy.random.RandomState.seed           event kind=seed_generator seed=seed@0 result=itself
numpy.random.RandomState.set_state      event kind=seed_generator seed=state@0 result=itself
numpy.random.Generator.*                event kind=draw_own result=pure
numpy.save                              event kind=write path=file@0 object=arr@1 content=arr@1
numpy.savez                             event kind=write path=file@0
numpy.savez_compressed                  event kind=write path=file@0
numpy.savetxt                           event kind=write path=fname@0 object=X@1 content=X@1
numpy.load                              event kind=read path=file@0 result=pure
numpy.loadtxt                           event kind=read path=fname@0 result=pure
numpy.genfromtxt                        event kind=read path=fname@0 result=pure
numpy.memmap                            event kind=read path=filename@0 result=pure
joblib.dump                             event kind=write path=filename@1 object=value@0 content=value@0
joblib.load                             event kind=read path=filename@0 result=pure
pandas.read_csv                         event kind=read path=filepath_or_buffer@0 result=pure
pandas.read_parquet                     event kind=read path=path@0 result=pure
pandas.read_pickle                      event kind=read path=filepath_or_buffer@0 result=pure
pandas.read_json                        event kind=read path=path_or_buf@0 result=pure
numpy.sort                              count
numpy.unique                            count
natsort.natsorted                       count
natsort.humansorted                     count
natsort.os_sorted                       count
numpy.*                                 pure
math.*                                  pure
statistics.*                            pure
operator.*                              pure
itertools.count                         new type=itertools.count
itertools.islice                        bounds
itertools.cycle                         cycles
itertools.*                             pure
types.SimpleNamespace                   new type=argparse.Namespace
argparse.Namespace                      new type=argparse.Namespace
collections.defaultdict                 new type=dict
collections.OrderedDict                 new type=dict
collections.Counter                     new type=dict
collections.deque                       new type=list
copy.deepcopy                           event kind=copy object=x@0 result=copy
copy.copy                               event kind=copy object=x@0 result=copy
json.loads                              pure
json.dumps                              pure
json.load                               pure
json.dump                               event kind=write object=fp@1 content=obj@0
pickle.load                             pure
pickle.dump                             event kind=write object=file@1 content=obj@0
yaml.*                                  pure
ruamel.yaml.*                           pure
ruamel.yaml.YAML                        new type=ruamel.yaml.YAML
re.*                                    pure
hashlib.*                               pure
weakref.proxy                           itself
weakref.ref                             refers
functools.partial                       calls
functools.wraps                         itself
os.path.exists                          event kind=look path=path@0 result=disk
os.path.isfile                          event kind=look path=path@0 result=disk
os.path.isdir                           event kind=look path=s@0 result=disk
os.path.lexists                         event kind=look path=path@0 result=disk
os.path.getsize                         event kind=look path=filename@0 result=disk
os.path.getmtime                        event kind=look path=filename@0 result=disk
os.access                               event kind=look path=path@0 result=disk
os.listdir                              event kind=list path=path@0 result=listing
os.scandir                              event kind=list path=path@0 result=listing
os.walk                                 event kind=list path=top@0 result=listing
glob.glob                               event kind=list path=pathname@0 result=listing
glob.iglob                              event kind=list path=pathname@0 result=listing
os.path.join                            pure
os.path.*                               pure
os.getcwd                               same
os.cpu_count                            same
os.makedirs                             event kind=make_folder path=name@0 exist_ok=exist_ok@2
os.mkdir                                event kind=make_folder path=path@0
os.remove                               event kind=remove path=path@0
os.unlink                               event kind=remove path=path@0
os.rmdir                                event kind=remove path=path@0
shutil.copytree                         event kind=make_folder path=dst@1 exist_ok=dirs_exist_ok@6
shutil.rmtree                           event kind=remove path=path@0
os.rename                               event kind=rename path=src@0 to=dst@1
os.replace                              event kind=rename path=src@0 to=dst@1
shutil.move                             event kind=rename path=src@0 to=dst@1
shutil.copy                             event kind=copy_file path=src@0 to=dst@1
shutil.copyfile                         event kind=copy_file path=src@0 to=dst@1
shutil.copy2                            event kind=copy_file path=src@0 to=dst@1
urllib.request.urlretrieve              event kind=write path=filename@1 result=pure
os.symlink                              event kind=link path=dst@1
io.BytesIO                              new type=io.BytesIO
open                                    event kind=open path=file@0 mode=mode@1 result=file
io.open                                 event kind=open path=file@0 mode=mode@1 result=file
codecs.open                             event kind=open path=filename@0 mode=mode@1 result=file
gzip.open                               event kind=open path=filename@0 mode=mode@1 result=file
bz2.open                                event kind=open path=filename@0 mode=mode@1 result=file
lzma.open                               event kind=open path=filename@0 mode=mode@1 result=file
csv.writer                              itself
csv.DictWriter                          itself
file.write                              event kind=fill content=text@0
file.writelines                         event kind=fill content=lines@0
file.writerow                           event kind=fill content=row@0
file.writerows                          event kind=fill content=rows@0
pathlib.Path                            pure
pathlib.PurePath                        pure
sys.exit                                ends status=status@0
os._exit                                ends status=status@0
exit                                    ends status=code@0
quit                                    ends status=code@0
os.abort                                ends
os.kill                                 ends process=pid@0 signal=signal@1
signal.signal                           event kind=handler
atexit.register                         event kind=at_exit function=func@0
warnings.*                              same
logging.*                               same
argparse.ArgumentParser                 new type=argparse.ArgumentParser
contextlib.nullcontext                  enters scope=plain
contextlib.closing                      itself
contextlib.ExitStack                    new type=contextlib.ExitStack
contextlib.suppress                     enters scope=suppress
contextlib.redirect_stdout              enters scope=plain
multiprocessing.cpu_count               same
subprocess.Popen                        event kind=start env=env@10
multiprocessing.Process                 new type=multiprocessing.Process target=target@1 arguments=args@3
multiprocessing.Process.start           starts
multiprocessing.get_context             new type=multiprocessing.Context
multiprocessing.Context.Process         new type=multiprocessing.Process target=target@1 arguments=args@3
tqdm.tqdm                               itself
tqdm.auto.tqdm                          itself
tqdm.trange                             range
tqdm.auto.trange                        range
tqdm.notebook.tqdm                      itself
tqdm.autonotebook.tqdm                  itself
tqdm.std.tqdm                           itself
tqdm.tqdm_notebook                      itself
tqdm.notebook.trange                    range
rich.progress.track                     itself
len                                     count
sorted                                  count
sum                                     count
min                                     count
max                                     count
any                                     count
all                                     count
"""
